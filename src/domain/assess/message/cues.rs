//! The cues: what people and agents say when they plan, ask, give up or report.
//!
//! Every pattern matches one normalised sentence (lower case, straight quotes, no markup).

use regex::{Match, Regex};
use std::sync::LazyLock;

/// A pattern that cannot fail at run time: an invalid one matches nothing, and a test asserts that all of
/// them compile.
#[derive(Debug)]
pub(super) struct Cue(Option<Regex>);

/// What `\w` stands for in a cue: digits, the underscore, and the ranges in which the letters of the languages of
/// the cues lie. Unicode's own class has hundreds of ranges and takes ten times as long to compile.
const WORD: &str =
    r"[0-9A-Za-z_\u{C0}-\u{1FFF}\u{2C00}-\u{2DFF}\u{3040}-\u{D7FF}\u{F900}-\u{FDFF}]";

impl Cue {
    fn new(pattern: &str) -> Self {
        let pattern = pattern
            .replace(r"\w", WORD)
            .replace(r"\W", &format!("[^{WORD}]"))
            .replace(r"\d", "[0-9]");
        Self(Regex::new(&pattern).ok())
    }

    fn any_of(alternatives: &[&str]) -> Self {
        Self::new(
            &alternatives
                .iter()
                .map(|a| format!("(?:{a})"))
                .collect::<Vec<_>>()
                .join("|"),
        )
    }

    #[cfg(test)]
    pub(super) fn compiles(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    pub(super) fn find<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.0.as_ref()?.find(text)
    }

    pub(super) fn find_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Match<'t>> {
        let found = self.0.as_ref().map(|regex| regex.find_iter(text));
        found.into_iter().flatten()
    }
}

macro_rules! cues {
    ($($(#[$doc:meta])* $name:ident = [$($pattern:expr),* $(,)?];)*) => {
        $($(#[$doc])* pub(super) static $name: LazyLock<Cue> =
            LazyLock::new(|| Cue::any_of(&[$($pattern),*]));)*

        /// Every cue with its name, for the test that all patterns compile.
        #[cfg(test)]
        pub(super) fn all() -> Vec<(&'static str, &'static Cue)> {
            vec![$((stringify!($name), &*$name)),*]
        }
    };
}

/// Participles of verbs that change something, which excludes looking, reading and finding.
macro_rules! changed {
    () => {
        "(?:re-?)?(?:implemented|added|fixed|updated|created|refactored|removed|replaced|renamed|moved|\
         completed|finished|resolved|corrected|written|wrote|changed|modified|migrated|configured|\
         installed|committed|pushed|merged|deployed|applied|integrated|extended|converted|extracted|\
         introduced|wired|documented|tightened|cleaned up|deleted|built|set up|generated|adjusted|\
         patched|ported|bumped|switched|reverted|simplified|exposed|enabled|disabled|hardened|\
         improved|optimi[sz]ed|addressed|registered|restored|worked|polished|delivered|upgraded|\
         downgraded|reorgani[sz]ed|restructured|consolidated|inlined|dropped|made|edited|included|\
         redesigned|rewrote|rewritten|shipped|hooked up|inserted|appended|prepended|published|\
         released|rebased|cherry-picked|formatted|sorted|marked|populated|translated|styled|secured|\
         discarded|pulled|cloned|synced|synchroni[sz]ed|downloaded|initiali[sz]ed|defined|scaffolded|\
         stubbed|locked|tuned|excluded|activated|connected|linked|bundled|rolled out|unified|swapped|tweaked|\
         trimmed|split|wrapped|flattened|reordered|reworked|rewired|redirected|decoupled|parametri[sz]ed|\
         typed|collapsed|hoisted|relaxed|shortened|reduced|increased|raised|lowered|bounded|capped|cached|\
         memoi[sz]ed|debounced|throttled|guarded|gated|saniti[sz]ed|escaped|normali[sz]ed|deduplicated|deduped|pinned|\
         aligned|centered|centred|restyled|resized|locali[sz]ed|seeded|backfilled|archived|tagged|squashed|\
         amended|regenerated|rebuilt|recreated|copied|imported|exported|mounted|attached|assigned|ticked|\
         moderni[sz]ed|streamlined|brought|saved|unblocked|repaired|silenced|suppressed|encapsulated|abstracted)"
    };
}

/// Infinitives of verbs that announce work.
macro_rules! act {
    () => {
        "(?:re-?)?(?:implement|add|fix|update|create|refactor|remove|replace|rename|move|complete|finish|\
         resolve|correct|write|change|modify|migrate|configure|install|commit|push|merge|deploy|apply|\
         integrate|extend|convert|extract|introduce|wire|document|clean|delete|build|set|generate|\
         adjust|patch|port|bump|switch|revert|simplify|expose|enable|disable|improve|optimi[sz]e|\
         address|register|restore|start|begin|proceed|continue|go|move|take|look|check|read|review|\
         explore|examine|investigate|inspect|analy[sz]e|search|find|run|test|verify|validate|try|\
         make|use|do|get|open|edit|prepare|plan|break|dig|trace|map|locate|identify|understand|\
         gather|draft|design|outline|tackle|handle|work|execute|perform|reproduce|debug|put|rerun|\
         instrument|list|scan|see|view|confirm|ensure|split|insert|append|launch|fetch|pull|rebase)"
    };
}

cues! {
    /// A question mark at the end.
    QUESTION = [r#"\?["')\]]*\s*$"#, r"^¿", r"吗[。.]?\s*$", r"(?:ますか|ですか|でしょうか|ませんか)[。.]?\s*$", r"(?:까요|나요|습니까)[.]?\s*$"];

    /// A request for permission, approval, access or an answer, or a wait for one.
    ASK = [
        r"\b(?:i|we)(?:'ll|'d| will| would)?(?: \w+){0,2} (?:need|require|request|seek|await)(?:ing|ed)?\b[^.]{0,60}\b(?:permissions?|approval|approve|access|authori[sz]ation|consent|confirmation|go-ahead|clarification|input|decision|guidance|credentials|answers?|feedback|sign-off|more (?:information|details|context)|you to|your)\b",
        r"(?:^|^\W*(?:\w+[,.!]? ){1,2}|\b(?:i|i'm|i'll|we|we're|me|to|still|currently|now|am|is|are|while|just)\b(?: \w+){0,2} )(?:wait|waiting|awaiting|awaits?|standing by|stand by|pausing|paused|holding off|on hold)\b[^.]{0,60}\b(?:permissions?|approval|approved?|access|authori[sz]ation|your?|users?|confirmation|confirm|instructions?|input|response|reply|answers?|go-ahead|feedback|decision|to be granted|signal|review)\b",
        r"\b(?:once|when|after|as soon as|if|until) (?:i (?:have|receive|get) (?:the |that |this |these |those |your |an? )?(?:\w+ )?(?:access|permissions?|approval|your|go-ahead|confirmation|answers?|input|clarification)|granted|approved|confirmed|(?:the |these |those |that )?(?:permissions?|access|approval)\b)",
        r"\b(?:once|when|after|as soon as|if|until) you(?:'ve| have|'re)? (?:grant|approve|confirm|provide|answer|clarif|add\b|added|share|decide|choose|chosen|give|given|reply|respond|accept|allow|pick|select|tell|let me|enable|authori|paste|send|sent|upload|ok\b|okay|ready|agree|say|specif)",
        r"\b(?:please|kindly)\b[^.?]{0,30}\b(?:approve|grant|allow|confirm|provide|share|add .{1,60}to (?:the|this) chat|clarify|tell me|specify|choose|select|pick|paste|send|upload|advise|authori[sz]e|accept|respond|reply|answer|decide|give me|point me|attach|describe)\b",
        r"\blet me know (?:which|what|whether|how you|your|when you|where|who|if (?:you approve|you (?:want|prefer) me to|i (?:should|may|can)|that works|this works|you(?:'d| would) (?:like|prefer) (?:me|to proceed)|i'm (?:good|clear|ok)|it's ok))",
        r"\b(?:would|do) you (?:like|want|prefer)\b", r"\b(?:should|may|shall|can) i (?:proceed|go ahead|continue|start|begin|run|implement)\b",
        r"\b(?:requires?|needs?|need) (?:your |user |manual |explicit |human )?(?:approval|permissions?|confirmation|authori[sz]ation)\b",
        r"\b(?:grant|give) (?:me|the) (?:\w+ ){0,3}(?:permissions?|access|approval)\b",
        r"\b(?:approve|confirm|tell me|say the word|reply|answer|give (?:me )?the (?:go|word)|say \W?(?:yes|go|proceed))\b[^.]{0,60}\b(?:and i(?:'ll| will| can)|so (?:that )?i can|to proceed|to continue)\b",
        r"\bready (?:to|when you|for your)\b[^.]{0,40}\b(?:your (?:approval|go-ahead|confirmation|input)|when(?:ever)? you)\b", r"\bwhenever you're ready\b",
        r"\bwhat (?:should|would|do|shall|can) (?:i|you|we)\b", r"\bwhich (?:one|option|approach|of)\b.*\b(?:you|prefer|should)\b",
        r"\b(?:before|until) (?:i|we) (?:can )?(?:proceed|continue|start|begin|go)\b.*\b(?:need|confirm|approv|you)",
        r"\blet me (?:ask|request|check with you)\b", r"\bi'll (?:wait|hold|pause)(?: here)?(?:[.!,;]|$| (?:for (?:you|the user|approval|permission)|until you))", r"\bto proceed, (?:i|please|you)\b",
        r"\b(?:haven't|hasn't|have not|has not|not) (?:\w+ )?(?:been )?(?:granted|approved)\b", r"\bplease (?:add|open|drop|include)\b.*\b(?:files?|chat|context)\b", r"\bplease (?:run|execute|test|try)\b.*\b(?:share|send|paste|tell me|let me know (?:what|the|if it)|report back|with me)\b", r"\blet me know if (?:this|that|it|the plan|all this|everything) (?:looks|sounds|works|is (?:ok|okay|right|fine|good|correct))\b", r"\bi would need to (?:see|know|have)\b", r"\byour (?:call|choice|decision)\b",
        r"^(?:awaiting|waiting (?:for|on))\b[^.]{0,40}\b(?:granted|user|you|approv\w+|permission\w*|input|answers?)\b", r"\bneeds? (?:you to|your)\b",
        // Chinese
        r"请(?:您|你)?(?:先)?(?:提供|确认|批准|授权|告诉|告知|选择|回复|说明|允许|同意|决定|问|指定|补充|指示)", r"請(?:您|你)?(?:先)?(?:提供|確認|批准|授權|告訴|告知|選擇|回覆|說明|允許|同意|決定|問|指定|補充|指示)",
        r"(?:等待|等候|等您|等你)(?:您|你|用户|用戶)?.{0,12}(?:批准|许可|授权|确认|指示|回复|答复|許可|授權|確認|回覆|同意)", r"需要(?:您|你)(?:的)?.{0,8}(?:批准|许可|授权|确认|同意|许可|許可|授權|確認|提供)",
        r"(?:是否(?:需要|要|继续|可以|繼續)|要不要|需要我|您希望|你希望|您想|你想)",
        // Japanese
        r"(?:許可|承認|確認|指示|回答|権限).{0,12}(?:ください|下さい|お願い|待|必要|いただ)", r"(?:教えて|お知らせ|選んで|提供して|共有して|決めて)(?:ください|下さい|いただ)", r"お待ちして",
        // Korean
        r"(?:승인|허가|권한|확인|지시|답변|응답|허용|동의).{0,16}(?:필요|대기|기다|부탁|주세요|주시|요청)", r"(?:알려|말씀해|선택해|제공해|공유해|결정해) ?주(?:세요|시)", r"대기 ?(?:중|하겠)", r"할까요|될까요|드릴까요",
        // Portuguese
        r"\b(?:você|vocês|voce) (?:gostaria|quer|prefere|deseja)\b|\b(?:pode|poderia) (?:me |confirmar|aprovar|autorizar|informar|enviar|fornecer|compartilhar|esclarecer|verificar se)", r"\b(?:quer|querem|deseja|gostaria|prefere) que (?:eu|a gente)\b", r"\b(?:qual|quais) (?:\w+ )?(?:você|prefere|deseja|opção)\b", r"\b(?:aguardo|aguardando|esperando)\b.{0,50}\b(?:aprova\w+|autoriza\w+|permiss\w+|sua?|seu|confirma\w+|instru\w+|resposta|você|retorno|ok)", r"\bpor favor\b.{0,30}\b(?:confirme|aprove|autorize|informe|forneça|envie|escolha|responda|diga|conceda|compartilhe|adicione|indique|me)\b", r"\bpreciso (?:de |da |do |que )(?:sua |seu |uma |você |a )?(?:permiss|autoriza|aprova|confirma|acesso|mais|resposta|você|sua|decid)", r"\b(?:posso|devo) (?:prosseguir|continuar|seguir|começar|implementar|executar|aplicar)\b", r"\bme (?:diga|avise|informe) (?:se|qual|como|quando|o que)\b", r"\bassim que (?:você|receber|tiver|for)\b",
        // Spanish
        r"\b(?:quieres|quiere|deseas|desea|te gustaría|le gustaría|prefieres|prefiere|podrías|podría) (?:que|usted|confirmar|indicar|darme|proporcionar)", r"\b(?:espero|esperando|a la espera de|quedo a la espera)\b.{0,50}\b(?:aprobación|autorización|permisos?|tu|su|confirmación|instrucciones|respuesta)\b", r"\bpor favor,? .{0,30}\b(?:confirma|confirme|aprueba|apruebe|autoriza|autorice|indica|indique|proporciona|proporcione|elige|elija|dime|dígame|comparte|comparta|concede|conceda|responde|responda)\b", r"\bnecesito (?:tu|su|que (?:me|tú|usted)|permisos?|autorización|aprobación|acceso|una? (?:respuesta|confirmación)|más (?:información|detalles))", r"\bpuedo (?:proceder|continuar|seguir|empezar)\b.*\?", r"\b(?:una vez|cuando|en cuanto) (?:que )?(?:me |lo )?(?:confirmes|apruebes|autorices|concedas|des|tenga)\b",
        // French
        r"\b(?:voulez|souhaitez|pouvez|préférez|pourriez|désirez)[- ]vous\b", r"\b(?:veux|souhaites|peux|préfères|pourrais)[- ]tu\b", r"\b(?:puis-je|dois[- ]je)\b", r"\bveuillez\b", r"\bj'ai besoin (?:de |d')(?:votre|ton|ta|vos|une?|l'|la|plus|accéder|autorisation|permission|précision)", r"\b(?:en attente|j'attends|dans l'attente)\b.{0,50}\b(?:autorisation|permission|votre|ton|ta|vos|confirmation|approbation|instructions|réponse|validation|accord)\b", r"\b(?:merci de|s'il (?:vous|te) plaît,?) (?:me |m'|de )?(?:confirmer|préciser|indiquer|fournir|approuver|autoriser|valider|choisir|donner|dire|répondre)\b", r"\b(?:dès|une fois) que (?:vous|tu|j'aurai)\b",
        // German
        r"\b(?:möchten sie|möchtest du|wollen sie|willst du|soll ich|sollen wir|darf ich|können sie|kannst du|könnten sie|könntest du)\b", r"\bbitte (?:bestätig\w+|gib|geben|erteil\w+|teil\w*|wähl\w+|sag\w*|genehmig\w+|erlaub\w+|antwort\w*|entscheid\w*|stell\w*)\b", r"\b(?:brauche|benötige)\b.{0,40}\b(?:erlaubnis|genehmigung|freigabe|zustimmung|bestätigung|berechtigung\w*|zugriff|antwort|angaben|informationen|entscheidung)\b", r"\b(?:warte|wartet)\b.{0,30}\bauf\b.{0,40}\b(?:erlaubnis|genehmigung|freigabe|zustimmung|bestätigung|antwort|rückmeldung|anweisung\w*|eingabe|ihre?|deine?)\b", r"\bsobald (?:sie|du|ich (?:die|eine|ihre|deine)|die freigabe)\b",
        // Italian
        r"\b(?:vuoi|vuole|desideri|desidera|preferisci|preferisce|puoi|potresti) (?:che|confermare|indicarmi|darmi|fornire)\b", r"\bposso (?:procedere|continuare|iniziare)\b.*\?", r"\b(?:attendo|in attesa d\w+|aspetto)\b.{0,40}\b(?:approvazione|autorizzazione|conferma|tua|tuo|sua|risposta|istruzioni|permess\w)", r"\bho bisogno (?:di|del|della|che)\b.{0,40}\b(?:permess\w|autorizzazione|approvazione|conferma|accesso|tu|tua|tuo|più)",
        // Russian
        r"\b(?:пожалуйста|прошу),?\s.{0,30}(?:подтверд|разреш|уточн|сообщ|предостав|выбер|ответ|укаж|одобр|скаж)", r"\b(?:жду|ожидаю|в ожидании)\b.{0,40}(?:подтвержд|разреш|ответ|одобрен|ваш|твое|указан|инструкц)", r"(?:мне нужн\w+|требуется|нужн\w+) .{0,25}(?:разрешени|подтвержд|доступ|одобрен|уточнен|ваш)", r"\b(?:хотите ли|продолжать ли|хотите, чтобы|могу ли я)\b",
        r"\b(?:just |then )?tell me (?:what|which|how|if|when|where|whether)\b", r"\bif (?:this|that|it|all|everything|you)\b[^.?]{0,60}\b(?:looks?|sounds?|works?|is|are|agree|fine|okay?)\b[^.?]{0,40}\bi(?:'ll| will| can)\b", r"\bready for (?:the|your|my|a) (?:next |new |first )?(?:task|instructions?|request|question|input|prompt|assignment)\b",
        r"\bwithout (?:your|explicit|user|prior|an?) (?:\w+ )?(?:go-ahead|approval|permission|consent|confirmation|input|sign-off|okay|ok)\b", r"^(?:\w+: )?(?:requesting|asking for|seeking|pending|needs?|waiting|awaiting|holding)\b[^.]{0,40}\b(?:approval|permissions?|confirmation|access|go-ahead|your|you|clarification|input|review|consent|authori[sz]ation)\b", r"\bplease\b.{0,100}\bi(?:'ll| will| can)\b", r"\bapprove\?",
        r"\bwithout (?:you|your|the user)\b", r"\bplease\b[^.?]*:$",
        r"^(?:pick|choose|select|approve|decide|answer|reply|confirm|confirme|confirma|elige|escolha|wählen?) (?:one|which|the|a|an|this|between|either|any|por favor|if|whether|with|option)\b", r"\b(?:needs?|requires?|wants?) (?:a |an )?(?:human|person|user|manual|someone|reviewer|maintainer)(?: \w+)? to (?:approve|confirm|decide|answer|choose|authori[sz]e|allow|grant|accept)\b", r"\bi(?:'ve| have)? paused\b",
        r"^(?:just |simply |now )(?:drop|send|paste|share|upload|describe|type|say|let me know)\b", r"\bready when(?:ever)? you are\b",
        r"\bif you (?:can|could|would|don't mind)\b.{0,40}\b(?:share|provide|send|paste|grant|tell|give|add|confirm|point|upload|run|show)\b", r"\bi(?:'ll| will) (?:wait|hold|pause)(?: here)? (?:for|until)\b.{0,20}\b(?:credentials?|answers?|reply|response|decision|input|details|info\w*|files?|go-ahead|confirmation|access|feedback|instructions?|green light)\b",
        r"\bif you (?:switch|enable|turn|open|set|start|install|change|allow|rotate|log in|unlock|lift)\b[^.]*\bi(?:'ll| can| will)\b",
        r"\b(?:is|are|still|remains?) pending (?:on )?(?:your|you|user|the user's|human|manual) ?(?:approval|permission|confirmation|review|input|answer|go-ahead|decision)?\b",
    ];

    /// A closing courtesy that asks for nothing, or a rhetorical question.
    COURTESY = [
        r"\blet me know if (?:you|there|anything|this|it|something|the)\b", r"\bfeel free to\b", r"\bhappy to\b.*\bif\b", r"\bif you (?:have|need|want|run into|encounter|'d like|would like)\b[^?]*$",
        r"\bcan i help (?:you )?with\b", r"\banything else\b",
        r"\b(?:would you like|do you want|shall i|should i|let me know if you(?:'d| would) like)\b.*\b(?:anything else|any (?:other|additional|further)|additional|further (?:changes|improvements|adjustments|refinements)|(?:any|more) (?:adjustments|details?|examples?)|elaborate|explain|show you|walk (?:you )?through)\b",
        r"\b(?:tell me|let me know) what you think\b", r"(?:如需|如果(?:还|需要|有)|若需|如有|有任何).{0,20}(?:请|告诉|告知|联系)", r"(?:ほか|他|もし|何か|ご不明).{0,24}(?:お知らせ|教えて|ください)", r"(?:추가|더|다른|궁금).{0,20}(?:말씀|알려)",
    ];
    /// Cancels a courtesy.
    COURTESY_NOT = [r"\bif you(?:'d| would)? (?:like|prefer|want) (?:me to (?:proceed|continue|implement|apply|start|go|make|do|run|update|change|fix|add)|to proceed|that)\b[^?]*$", r"\bif you approve\b", r"\b(?:looks|sounds|is) (?:good|right|ok|okay|fine|correct)\b", r"\band i(?:'ll| will| can)\b", r"\b(?:please|could you|can you) (?:provide|share|confirm|clarify|specify|grant|approve|choose|tell|select|answer)\b", r"\b(?:plan|design|proposal|approach|options?)\b.*\bwhat you think\b"];

    /// A statement that the agent cannot do something.
    BLOCKED = [
        r"\b(?:i|we)(?:'m| am| are|'re| was| were)?(?: \w+){0,2} (?:can't|cannot|can not|couldn't|could not|unable to|not able to|blocked|stuck|prevented from|lack|don't have|do not have|didn't have|did not have|have no (?:way|access|permission|means|tools?|ability))\b",
        r"^(?:still |currently |completely )*(?:blocked|stuck|unable to|cannot|can't|could not|couldn't|failed to|not possible)\b",
        r"\b(?:blocker|blocking (?:issue|problem)|is blocked|are blocked|remains? blocked|blocked (?:by|on|because|from))\b",
        r"\b(?:permissions?|sandbox|policy|access|writes?|tools?|commands?|operation|requests?)\b[^.]{0,60}\b(?:denied|rejected|refused|blocked|prevent\w*|forbid\w*|forbidden|not permitted|not allowed|prohibit\w*|restrict\w*|unavailable|disabled)\b",
        r"\b(?:cannot|can't|could not|couldn't) (?:be (?:completed?|done|fixed|implemented|resolved|satisfied|run|built|verified|finished|executed|applied|made|written|installed|tested|solved|met)|proceed|continue|complete|finish|go on|move forward)\b",
        r"\b(?:is|was|are|were) (?:not possible|impossible|infeasible|not feasible|out of reach)\b", r"\bno (?:write|read|network|internet|file(?:system)?|shell) access\b", r"\bwithout (?:write |read |network |the )?(?:access|permission\w*|credentials)\b",
        r"\b(?:does not|doesn't|do not|don't) exist (?:in|anywhere)\b.*\b(?:cannot|can't|unable)\b", r"\bread-only\b.*\b(?:cannot|can't|sandbox|filesystem|file system|session|environment)\b", r"\bgiv(?:e|ing) up\b", r"\b(?:sandbox|policy|environment|system|firewall|proxy|harness|permissions?|session)\b (?:\w+ ){0,2}(?:blocks|prevents|rejects|denies|forbids|disallows|prohibits|refuses|lacks|has no)\b", r"\bnothing (?:more|else) (?:that )?i can (?:do|try)\b", r"\bkeeps? (?:failing|being (?:denied|rejected|blocked))\b", r"\b(?:out of|out with|outside(?: of)?|beyond) my (?:control|reach|ability|permissions?|power|access|capabilities)\b", r"\b(?:not (?:solvable|fixable|doable|achievable)|unsolvable)\b", r"\bexhausted (?:the|all|every|my) (?:\w+ )?(?:options?|approach(?:es)?|ideas)\b", r"\bneeds? (?:human|manual) (?:intervention|action|help)\b", r"\bi(?:'m| am) (?:sorry|afraid)\b.*\b(?:can't|cannot|unable|not able)\b", r"\bmust stop (?:here|now)\b",
        r"(?:无法|不能|没办法|没有(?:权限|办法|访问)|被(?:拒绝|阻止|阻塞|禁止)|受阻|無法|沒有權限|沒辦法)",
        r"(?:できません|できない|できなかった|権限がありません|拒否され|ブロックされ|不可能)", r"(?:할 수 없|수 없습니다|불가능|권한이 없|차단되|거부되|막혀|못했습니다)",
        r"\bnão (?:posso|consigo|consegui|pude|tenho (?:acesso|permissão|como)|é possível|foi possível)\b", r"\b(?:bloquead[oa]|impossível)\b", r"\bsem (?:acesso|permissão)\b",
        r"\bno (?:puedo|pude|tengo (?:acceso|permisos?|forma)|es posible|fue posible|he podido|se puede|logré)\b", r"\bimposible\b",
        r"\b(?:je ne peux pas|je ne peux|je n'ai pas (?:accès|la permission|pu|les droits|l'autorisation)|je n'arrive pas|il est impossible|impossible de|je suis bloqué|bloquée? par)\b",
        r"\b(?:ich )?(?:kann|konnte|können|konnten)\b.{0,60}\bnicht\b", r"\b(?:nicht möglich|unmöglich|kein(?:en)? (?:schreib)?zugriff|keine (?:berechtigung|schreibrechte|rechte)|blockiert)\b",
        r"\bnon (?:posso|riesco|ho (?:accesso|i permessi|potuto)|è possibile|è stato possibile)\b", r"\bbloccat[oa]\b", r"(?:не могу|не удалось|невозможно|нет (?:доступа|прав|возможности)|не получается|заблокирован|отказано в доступе)",
        r"\b(?:attempts?|edits?|calls?|actions?|changes|modifications?|hooks?)\b[^.]{0,60}\b(?:(?:was|were|been|being|is|are|got|gets|get) (?:\w+ )?(?:denied|rejected|refused|blocked|declined|prohibited|disallowed)|fail(?:s|ed)? (?:with|because|due))\b", r"\b(?:tried|attempted|attempts)\b.{0,80}\b(?:none of|without success|to no avail|unsuccessful\w*|no luck|still fails?|neither|all (?:of them )?fail(?:ed)?)\b", r"\b(?:ran|run|running) out of (?:turns|time|context|tokens|budget|iterations|steps|memory|disk|ideas)\b", r"\b(?:task|work|story|implementation|feature|job|item|goal)\b[^.]{0,40}\b(?:is|remains?|was|stays?|left)\b (?:\w+ )?(?:incomplete|undone|unfinished|not complete[d]?|not done|unresolved|not (?:been )?implemented)\b", r"^(?:task|story|work|implementation) (?:incomplete|failed|unfinished|not complete[d]?|blocked|aborted|abandoned)\b", r"\b(?:can't|cannot|can not|could not|couldn't) (?:get|make|find|reach|access|connect|load|download|install|resolve|reproduce|locate|determine|verify|satisfy|do)\b", r"\b(?:no|without a|missing) (?:workaround|alternative|way (?:to|forward|around))\b", r"\b(?:required?|necessary|needed|expected)\b[^.]{0,60}\b(?:is|are|was|were) (?:missing|unavailable|not (?:available|installed|present|set|configured|accessible|found|provided|in the repo\w*))\b", r"\bonly (?:the |an? |your )?(?:\w+ ){0,3}(?:can|could) (?:fix|do|renew|grant|change|resolve|provide|unblock)\b", r"\bnon (?:sono|siamo|è) (?:riuscit[oai]|stato possibile|in grado)\b", r"\bmancano i permessi\b", r"\bnão (?:deu|dá) para\b", r"\bno (?:hay forma|se pudo|pudimos|fue posible|logramos)\b", r"\b(?:je n'ai pas|nous n'avons pas) (?:pu|réussi)\b|\b(?:n'est|n'était|n'a) pas (?:possible|été possible|pu)\b", r"(?:失败了?[:：。]|任务失败|任務失敗|受限|不可用)", r"(?:失敗しました|利用できません|エラーで(?:停止|失敗))", r"(?:실패했습니다|사용할 수 없)", r"\b(?:nicht (?:gelungen|abschließen|abgeschlossen|durchführen|ausführen|verfügbar)|gescheitert|fehlgeschlagen)\b", r"(?:не (?:смог|получилось|могу)|недоступ|не хватает прав)",
        r"\b(?:i|we)\b[^.]{0,30}\b(?:wasn't|weren't|isn't|aren't|haven't been|hasn't been|wasn't been) (?:able|allowed|permitted|in a position)\b", r"\b(?:isn't|is not|aren't|not) (?:something|anything) (?:i|we) can\b", r"\b(?:not|isn't|aren't|outside (?:of )?what i'm|beyond what i'm) allowed to\b", r"\bhit a (?:wall|dead end|roadblock|snag)\b", r"\b(?:couldn't|could not|can't|cannot|can not|wasn't able to|unable to) be \w+(?:ed|t|n)\b", r"\bnone of (?:the|my|these|those|them|it)\b[^.]{0,40}\b(?:could|can|worked|works|work|succeeded|helped|went through|fixes|fixed|solves|solved)\b", r"\b(?:i|we|it) (?:have |has )?failed to \w+\b", r"\b(?:auto|automatically)[- ]?(?:denied|rejected|declined)\b", r"\b(?:isn't|is not|aren't|are not|wasn't|not) (?:\w+ )?(?:authenticated|reachable|logged in|accessible|available (?:to me|here|in this)|installed here|present in (?:the|this))\b", r"\b(?:don't|do not|didn't) know how to\b", r"\bhaven't been able to\b|\bwas(?:n't| not) (?:able|possible)\b", r"\b(?:made|is|making) (?:it )?impossible\b", r"\bimpossible (?:to|as|because|for|without)\b",
        r"\b(?:gave up|giving up|didn't (?:succeed|manage|work out)|did not (?:succeed|manage)|without succeeding|unsuccessful(?:ly)?)\b", r"\b(?:isn't|is not|aren't|are not|wasn't|not) (?:permitted|possible|feasible|achievable)\b", r"\b(?:on hold|had to stop|have to stop|leaving the task open|left undone|no result to report)\b",
        r"^(?:aborting|aborted|stopping here|bailing out|halting|halted)\b",
        r"\b(?:can't|cannot|can not|could not|couldn't) (?:identify|see|open|tell|figure|fix|change|modify|edit|apply|commit|push|write|read|run|build)\b",
        r"\bout of (?:options|ideas|approaches)\b", r"\b(?:none|neither) of\b[^.]{0,80}\b(?:resolves?|fix(?:es|ed)?|works?|worked|helps?|helped|solves?|succeeds?)\b",
        r"\b(?:requires?|needs?|relies on|depends on)\b[^.]*\bwhich\b[^.]*\b(?:doesn't|does not|isn't|is not|hasn't|has not|lacks?)\b", r"\b(?:this|the) (?:environment|sandbox|session|machine|container|runner)\b[^.]{0,20}\b(?:doesn't|does not|lacks?|has no)\b",
        r"\bno progress\b", r"\b(?:isn't|is not|aren't|are not|wasn't|weren't|never came|not) available\b",
    ];
    /// Cancels a statement of being blocked.
    BLOCKED_NOT = [r"\bno (?:\w+ )?(?:blockers?|longer blocked)\b", r"\b(?:unblocked|not blocked|nothing (?:is )?block\w*)\b", r"\bwithout (?:any )?(?:blockers|issues)\b", r"\bso that\b.*\bcannot\b", r"\b(?:now|is|are|gets?|were|was) (?:rejected|refused|denied)\b.*\b(?:with|when|by) (?:a |an )?(?:error|40\d|422|validation|clear)\b", r"\bno (?:open )?(?:issues|problems|errors)\b", r"\b(?:previously|before|earlier)\b[^.]*\b(?:failed|blocked|rejected)\b", r"\b(?:everything|all) else\b", r"\bone (?:remaining )?(?:caveat|limitation|exception|note)\b", r"\b(?:you|users?|they|customers?|clients?|nobody|anyone|attackers?) (?:can't|cannot|couldn't|can not|could not)\b"];

    /// A statement, with a reason, that nothing needs doing.
    SATISFIED = [
        r"\balready (?:\w+ ){0,3}(?:implemented|present|in place|exists?|done|complete[d]?|fixed|correct(?:ly)?|satisf\w+|up[- ]to[- ]date|configured|handled|covered|passing|passes|resolved|applied|fulfilled|finished|merged|committed|addressed|met|matches|supports?|contains?|includes?|has|have|does|set|there|added|exposes?|returns?|works?|updated|existed|meets?|satisf\w+|synced|in sync|committed|tested|verified|done|wired|part of)\b", r"\b(?:verified|confirmed)\b[^.]{0,40}\b(?:as|that|to be|is|are)\b[^.]{0,40}\b(?:complete[d]?|implemented|correct(?:ly)?|in place|satisfied|met)\b",
        r"\b(?:is|are|was|were|has|have|had)(?: been)? already\b", r"\b(?:exists|in place|done|there) already\b",
        r"\bno (?:\w+ ){0,3}(?:changes?|modifications?|edits?|fix(?:es)?|updates?|work|action|actions|implementation|tasks?|commits?)(?: \w+){0,3} (?:is |are |were |was )?(?:needed|required|necessary|to (?:make|do|be made)|remain(?:s|ing)?|left|outstanding)\b",
        r"\bno (?:changes?|modifications?|edits?|action)\b.{0,20}\b(?:needed|required|necessary)\b", r"^no (?:code )?changes? (?:were )?(?:needed|required|necessary|made)\b", r"\bno (?:remaining|outstanding|pending|open|further|unchecked|more) (?:\w+ )?(?:work|tasks?|items?|changes?|actions?)\b",
        r"\bnothing (?:\w+ ){0,2}(?:to (?:do|change|commit|fix|implement|add|update)|needs|needed|remains|left|is (?:needed|required|missing))\b", r"\b(?:does|do|did)(?:n't| not) (?:need|require) (?:any )?(?:\w+ )?(?:changes?|modifications?|work|fix\w*|updates?|action)\b", r"\bno need (?:to|for)\b.*\b(?:chang\w+|modif\w+|implement\w*|add\w*|fix\w*|work)\b", r"\bno-op\b", r"\b(?:is|are|everything|all|already|fully|remains?)(?: \w+)? up[- ]to[- ]date\b", r"\b(?:in|from|during) (?:an? |the )?(?:previous|earlier|prior) (?:session|run|loop|iteration|turn|attempt|commit)s?\b", r"\bthere(?:'s| is) nothing\b", r"\b(?:met|satisfied|covered|handled|provided) by (?:the )?(?:current|existing|present)\b", r"\b(?:left|leave|leaving) (?:it|them|everything|the \w+) (?:unchanged|untouched|as[- ]is|alone|as it (?:is|was))\b", r"\b(?:i|we) (?:made|have made|'ve made) no (?:\w+ )?(?:changes|edits|modifications)\b", r"\b(?:i|we) (?:did not|didn't|have not|haven't) (?:need to )?(?:change|changed|modify|modified|touch|touched|edit|edited) anything\b",
        r"已经?(?:存在|是最新|满足|有了|实现了该|具备)", r"(?:早已|已经|之前已经?|此前已经?)(?:全部|都|完全)?(?:实现|完成|修复|存在|满足|包含)", r"(?:无需|不需要|没有必要|不用|無需|沒有必要)(?:再|任何|做|进行|進行)*.{0,6}(?:修改|更改|改动|变更|操作|更新|處理|处理|改動|變更|下一)",
        r"(?:すでに|既に).{0,30}(?:実装|存在|完了|対応|満た|修正|設定|含)", r"(?:変更|修正|対応|作業)(?:は|の)?(?:必要(?:は)?(?:ありません|ない)|不要)", r"이미 .{0,30}(?:구현|존재|완료|적용|수정|되어|있습니다|충족)", r"(?:변경|수정|작업)(?:이|할|은|사항)? ?.{0,8}(?:필요(?:가)? ?없|필요하지 않|없습니다)",
        r"\bjá (?:está|estão|existe|existem|foi|foram|estava|havia|possui|contém|implementad\w+)\b", r"\b(?:nenhuma|não há|sem) (?:\w+ )?(?:alteraç\w+|mudanças?|modificaç\w+)\b.*\b(?:necess\w+|fazer)\b", r"\bnada (?:a|para|precisa|que) (?:fazer|alterar|mudar|ser)\b",
        r"\bya (?:está|están|existe|existen|fue|fueron|estaba|se|cumple|contiene|tiene|implementad\w+)\b", r"\b(?:no (?:es|son|se|hay|hace|hacen)|ningún|ninguna)\b.{0,30}\b(?:necesari\w+|requiere\w*|falta|cambios? (?:que|por)|nada que)\b", r"\bnada que (?:hacer|cambiar)\b",
        r"\b(?:est|sont|existe|a|ont|était|étaient) déjà\b", r"\bdéjà (?:en place|présent\w*|implémenté\w*|fait\w*|corrigé\w*|à jour|terminé\w*|complet\w*)\b", r"\baucune? (?:modification|changement|action|correction)\b.*\b(?:nécessaire|requise?|à)\b", r"\brien à (?:faire|modifier|changer|corriger)\b",
        r"\bbereits (?:\w+ ){0,3}(?:implementiert|vorhanden|umgesetzt|erledigt|behoben|erfüllt|aktuell|enthalten|abgeschlossen|korrekt|existiert)\b", r"\b(?:ist|sind|wurde|wurden|existiert|existieren|enthält|erfüllt)\b.{0,30}\b(?:bereits|schon)\b", r"\bkeine? (?:\w+ )?(?:änderung\w*|anpassung\w*|aktion|arbeit)\b.{0,20}\b(?:nötig|erforderlich|notwendig)\b", r"\bnichts (?:zu|mehr zu) (?:tun|ändern|erledigen)\b",
        r"\b(?:è|sono|esiste|esistono|era) già\b", r"\bgià (?:presente|implementat\w|completat\w|a posto|esistente|fatto|corrett\w)\b", r"\b(?:nessuna modifica|non (?:è|sono) necessari\w|non serve|niente da)\b", r"уже (?:\S+ ){0,3}(?:реализован|существ|есть|выполнен|исправлен|присутств|сделан|готов|обновл|содерж)", r"(?:изменени\S+|правк\S+|ничего).{0,25}(?:не (?:требу|нуж)|менять не)",
        r"\b(?:fixed|done|implemented|completed|resolved|addressed|merged|handled|covered|removed|there|exists?|present)(?: \w+){0,3} already\b", r"(?:没有(?:需要|什么|任何)|沒有(?:需要|什麼|任何)).{0,8}(?:处理|修改|更改|要做|的内容|工作|任务|處理)",
        r"\bnão (?:é|foi|há|são)(?: \w+)? (?:preciso|necess\w+|nada)\b", r"\bno need (?:for (?:me|us|any\w*) )?to (?:do|change|make|add|modify|touch|edit)\b", r"\b(?:já|ya) (?:é|são|es|son|faz|hace|funciona)\b", r"\bturns out\b[^.]{0,40}\b(?:duplicate|already|obsolete)\b", r"\b(?:doesn't|does not|no longer|didn't|did not) (?:occur|happen|reproduce|apply|exist)s?\b[^.]{0,30}\b(?:current|main|master|latest|any ?more|head)\b", r"\bnothing (?:further|more|else|left|new) (?:to|for me|remains|is)\b", r"(?:没有|沒有|并无|无)(?:需要|什么|任何)?.{0,4}(?:改动|修改|变更)的?(?:地方|必要|内容)?", r"\b(?:pas|rien) besoin\b|\bn'est (?:pas )?nécessaire\b", r"\bi have nothing (?:\w+ )?to do\b", r"\b(?:left|leaving) (?:`x`|x|\w+) (?:alone|untouched|unchanged|as[- ]is)\b",
        r"\b(?:is|are|exists?|has|have|does|works?|there)\b.*\balready[.!]?$", r"\b(?:changed|modified|touched|edited) nothing\b", r"\b(?:current|existing) (?:code|implementation|version|behaviou?r|setup|configuration)\b[^.]{0,30}\b(?:fulfils?|fulfills?|meets?|satisf\w+|covers?|handles?|does|supports?|implements?|complies|matches)\b", r"\b(?:can|could|should) be closed\b", r"\b(?:without|no) (?:any )?(?:code |further )?changes? (?:this (?:loop|iteration|run|session|turn)|at all|here)\b", r"^(?:nothing|no action|no work) (?:is )?(?:needed|required|necessary)\b", r"\bhandles? \w+ since\b", r"没有做任何(?:修改|更改|改动)", r"\bnão fiz nenhuma\b", r"\bno (?:hice|he hecho|realicé) ning\w+\b",
        r"\b(?:delivered|implemented|completed|done|finished|fixed|merged|added|shipped) (?:previously|before|earlier)\b|\bpreviously (?:delivered|implemented|completed|done|finished|fixed|merged|added|shipped)\b", r"\bno (?:\w+ ){0,2}(?:changes?|action|edits?|modifications?|work) (?:was |were |is |are )?(?:taken|on my (?:side|end|part)|from me|here|applied|performed|made|for me|this time)\b", r"^skip(?:ping|ped)?\b", r"\b(?:não há|nenhuma|sem) (?:mais )?(?:tarefas?|itens|pendências?|pendentes)\b|\bno (?:hay|quedan) (?:más )?(?:tareas|pendientes)\b", r"\b(?:execuç\w+|sess\w+|ejecuci\w+|sesi\w+|iteraç\w+|iteraci\w+|loops?) (?:anterior(?:es)?|previ[ao]s?)\b", r"\b(?:describes|matches|equals|is) what the (?:code|app|function|system|current \w+) (?:already )?(?:does|is|has)\b",
        r"\bno (?:commits?|code|patch|pr|diff) (?:is |are |was |were )?(?:needed|necessary|required)\b",
        r"\b(?:it|this|that|which|code|function|file|component|module|config\w*|test|endpoint|app|project|repo\w*) already \w+s\b", r"\b(?:it|this|that|they) (?:doesn't|does not|don't|do not|needn't)[.;,!]?$", r"^no (?:\w+ )?work (?:is )?(?:left|remaining|remains)\b", r"\b(?:leave|keep|leaving|keeping) (?:everything|it|things|the \w+) (?:as (?:it |they )?(?:is|are)|unchanged)\b",
        r"\balready the case\b",
        r"\b(?:task list|todo list|backlog|queue|plan) is empty\b", r"\b(?:every|each|all) (?:box|boxes|items?|tasks?|entry|entries|stor(?:y|ies)|points?)\b[^.]{0,40}\b(?:checked|ticked)\b", r"^no (?:code |further |other )?changes?[.!]*$", r"\b(?:present|available|supported|there|in place) since\b",
    ];
    /// A mention of existing work as an aside, which cancels the statement above.
    SATISFIED_NOT = [r"\bnothing (?:more|else) (?:that )?i can\b", r"\bno (?:\w+ ){0,4}(?:changes|files|source|code|protected)\b[^.]*\bwere (?:modified|touched)\b", r"\bpre-existing\b", r"\balready (?:contained|had) unrelated\b", r"\bif\b[^.]{0,20}\balready\b", r"\bi already (?:have|know|see)\b", r"\bnow up[- ]to[- ]date\b", r"\bshould('ve| have)\b.*\balready\b", r"\bso nothing else\b|\bnothing else (?:had|has|have|changed|was touched)\b", r"\b(?:already|ya|já|déjà|bereits|schon|già|уже)\b.{0,12}\b(?:in use|en uso|em uso|utilisé\w*|verwendet|belegt|in uso|занят\w*|running|taken|started|know|read|seen)\b", r"(?:占用|使用されて|사용 중)"];
    /// A statement that the task as a whole needs no work.
    SATISFIED_STRONG = [
        r"\balready (?:been )?(?:fully |completely |correctly )?(?:implemented|complete[d]?|satisfied|done|fixed|in place|up[- ]to[- ]date|present|resolved|finished)\b", r"\bno (?:\w+ ){0,3}(?:changes?|modifications?|edits?|work|action)(?: \w+){0,3} (?:is |are |were |was )?(?:needed|required|necessary)\b", r"\bnothing (?:\w+ ){0,2}(?:to (?:do|change|commit|fix|implement))\b",
        r"\bno (?:remaining|outstanding|pending|open|unchecked) (?:\w+ )?(?:work|tasks?|items?)\b", r"\b(?:in|from) (?:an? |the )?(?:previous|earlier|prior) (?:session|run|loop|iteration|turn)s?\b", r"\balready (?:contains?|meets?|satisf\w+|has|have|implements?|includes?|exist\w*|handles?|covers?) ", r"\bverified as (?:complete|implemented|done)\b", r"\bthere(?:'s| is) no (?:more |further |remaining )?work\b",
        r"\b(?:fixed|done|implemented|completed|resolved|addressed|handled)(?: \w+){0,3} already\b", r"\bi (?:made|have made|'ve made) no (?:\w+ )?(?:changes|edits|modifications)\b", r"^(?:no|zero) (?:\w+ )?(?:changes?|edits?|modifications?) (?:were |was |have been )?(?:made|needed|required|necessary)\b", r"\bnothing (?:left|remains|remaining) to\b",
        r"\bno need (?:for (?:me|us) )?to (?:do|change|make|modify|touch|edit) any\w*\b", r"\bnothing (?:further|more|left) to do\b", r"\bnothing further\b", r"\bno (?:\w+ ){0,2}(?:edits|changes|modifications) (?:are |were )?(?:required|needed|necessary)\b",
        r"\bi (?:therefore |thus |have |so )?(?:changed|modified|touched|edited) nothing\b",
        r"\b(?:delivered|implemented|completed|fixed|done) previously\b", r"\bno (?:hay|quedan|há)\b.*\bpendient?es?\b|\bnão há\b.*\bpendentes\b", r"\bno action (?:was )?(?:taken|needed|required)\b",
    ];

    /// A report of work done in the first person or without a subject.
    DONE = [
        r"\b(?:i|we) (?:was able to|were able to|managed to|went ahead and)\b", r"\b(?:i|we)(?:'ve| have) gone ahead and\b", concat!(r"^(?:[\w`#-]+ ){1,4}", changed!(), r"(?:,? (?:and )?(?:\w+ )?", changed!(), r")*\s*(?:[.;,:!(]|$)"),
        r"^here(?:'s| is) (?:what|everything) (?:i |that )?(?:changed|did|was|has been|i've)\b",
        r"^(?:corrigid|adicionad|criad|atualizad|implementad|removid|ajustad|concluíd|finalizad|corregid|agregad|añadid|cread|actualizad|eliminad|aplicad|completad)[oa]s?\b", r"^(?:ajouté|corrigé|créé|implémenté|modifié|supprimé|remplacé|complété|appliqué)e?s?\b", r"^(?:hinzugefügt|angepasst|implementiert|aktualisiert|aggiunt[oaie]|corrett[oaie]|creat[oai]|aggiornat[oaie])\b",
        concat!(r"\b(?:i|we)(?:'ve| have|'d)?(?: \w+ly| now| just| also| already| since| then| \w+ and)* ", changed!(), r"\b"),
        concat!(r"^(?:(?:successfully|now|also|all|just|finally|i|then|and|have|perfect[.!]|great[.!]|ok[.!])[, ]+)*", changed!(), r"\b(?:[^?]*)$"),
        concat!(r"\b(?:was|were|has been|have been|been|got|(?:is|are)(?: all| both)?(?: now| fully| successfully| completely| entirely| properly))(?: now| all| both| also| \w+ly)* ", changed!(), r"\b"),
        r"\b(?:is|are)(?: all| both| also)* (?:completed|finished|implemented|fixed|resolved|committed|merged|deployed|pushed|updated|created|wired|migrated|done)\b(?: (?:and|in|on|with|as|at|to)\b|[.,;:!]|$)", r"\bnow in sync\b", r"\b(?:changes?|fix|edits|it) (?:is|are) in\b[.,;!]?", r"\bworks? as (?:expected|intended|designed)\b",
        r"\b(?:is|are|now|all|both)(?: now| all| fully| successfully| \w+ly)* (?:complete|done|ready|in place|live|green|working(?: as| now| correctly| again|[.,!;]|$)|functional|closed|operational|wired)\b",
        r"^(?:all |everything |it's |that's |and )?(?:done|finished|complete[d]?|fixed|shipped|merged|committed|pushed|implemented|resolved|all set|good to go|ready)\b[ .!:;,]*(?:$|[-–:])", r"^(?:done|fixed|committed|finished|completed|pushed|shipped|implemented)[.!,;:]", r"^(?:all set|all done|good to go)\b",
        r"\b(?:implementation|fix|fixes|task|tasks|feature|migration|refactor(?:ing)?|work|changes|integration|phase|step|story|summary:.*|setup|cleanup|update|updates|slice|issue) (?:is |are |#?\d+ )?(?:now )?(?:complete[d]?|done|finished|implemented|fixed)\b",
        r"\b(?:complete[d]?|done|finished|implemented|fixed)[.!]*$", r"\bsuccessfully\b",
        r"\b(?:tests?|checks?|build|suite|lint|typecheck|specs|everything|ci|compilation)\b[^.?]{0,40}\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|green|clean|successful)\b", r"\b\d+(?:/\d+)? (?:\w+ )?(?:tests? )?(?:passed|passing|pass)\b",
        r"\b(?:this|the) (?:fix|change|update|implementation|solution|patch) (?:adds|ensures|resolves|addresses|makes|moves|replaces|follows|solves|removes|fixes|includes|uses|was|now)\b", r"\b(?:these|this|the|all) (?:changes?|updates?|fix(?:es)?|modifications?|commits?|edits?)(?: now| also)? (?:implements?|adds?|ensures?|fix(?:es)?|resolves?|address(?:es)?|makes?|improves?|introduces?|completes?|brings?)\b", r"^(?:what|files?|changes?)(?: i)? (?:changed|modified|created|made|updated|added)\b", r"^(?:changes|changed files?|summary of (?:changes|fixes)|fix applied|deliverables|validation|verification results?|test results?|results?)\b[^.]{0,40}$",
        r"\b(?:should|will) now (?:work|pass|compile|build|resolve|be|show|return)\b", r"\bnow (?:works?|passes|compiles|builds|returns|supports?|handles|uses|includes|shows|reads|accepts|validates|displays|rejects|has|lives?|points?)\b", r"\bready (?:for|to) (?:review|use|merge|production|test|run|be|independent|the next|commit|deploy)",
        r"已(?:经)?(?:成功)?(?:完成|实现|修复|添加|更新|创建|修改|删除|提交|重构|移除|解决|部署|配置|写入|加入|新增)", r"(?:完成了|修复了|实现了|添加了|更新了|创建了|修改了|完工|搞定|全部(?:通过|完成)|测试(?:均|都|全部)?通过|已(?:經)?(?:完成|實作|修復|新增|更新|建立|修改|刪除|提交))",
        r"(?:実装|追加|修正|更新|作成|変更|削除|完了|対応|リファクタリング|設定|移動)(?:を)?(?:完了)?(?:し|いたし)(?:まし)?た", r"(?:完了です|成功しました|パスしました|通りました|通過しました)", r"(?:구현|추가|수정|업데이트|완료|생성|작성|변경|삭제|적용|해결|커밋|리팩터링|반영)(?:을|를|이)? ?(?:완료)?(?:했|하였|되었|됐|했습니다)", r"(?:통과(?:했|합니다|됩니다)|완료입니다|마쳤습니다|만들었습니다|고쳤습니다|끝났습니다)",
        r"\b(?:implementei|adicionei|corrigi|conclu[ií]|finalizei|criei|atualizei|removi|alterei|refatorei|ajustei|fiz|apliquei|configurei|movi|substituí|escrevi|commitei)\b", r"\b(?:foi|foram|está|estão|tudo|tarefa|implementação|correção|concluíd\w+)(?: \S+){0,3} (?:implementad|adicionad|corrigid|concluíd|finalizad|criad|atualizad|removid|alterad|feit|pront|complet|aplicad|funcionando|resolvid)", r"^(?:pronto|feito|concluído|concluída|finalizado|tudo pronto)\b", r"\bcom sucesso\b", r"\btestes? (?:\w+ )?(?:passa\w+|verdes)\b",
        r"\b(?:implementé|agregué|añadí|corregí|creé|actualicé|eliminé|modifiqué|completé|terminé|refactoricé|apliqué|moví|cambié|arreglé|configuré)\b", r"\bhe(?:mos)? (?:\w+ )?(?:implementado|agregado|añadido|corregido|creado|actualizado|eliminado|modificado|completado|terminado|aplicado|cambiado|arreglado|movido|hecho|escrito|refactorizado)\b", r"\b(?:se ha|se han|ha sido|han sido|fue|fueron|está|están|queda|quedó)(?: \S+){0,3} (?:implementad|agregad|añadid|corregid|cread|actualizad|eliminad|modificad|completad|terminad|aplicad|list[oa]|hecho|resuelt)", r"^(?:listo|hecho|terminado|completado|todo listo)\b", r"\bcon éxito\b", r"\b(?:las pruebas|los tests|tests) (?:\w+ )?pasan\b",
        r"\bj'ai (?:\w+ )?(?:ajouté|corrigé|créé|implémenté|terminé|mis à jour|modifié|supprimé|remplacé|complété|refactorisé|appliqué|déplacé|écrit|ajusté|fini|résolu|renommé|intégré|configuré|commité|committé|fait)\w*\b", r"\b(?:est|sont|a été|ont été)(?: \S+){0,3} (?:terminée?s?|complète?s?|complétée?s?|corrigée?s?|créée?s?|implémentée?s?|ajoutée?s?|mise?s? à jour|résolue?s?|prête?s?|finie?s?|modifiée?s?|supprimée?s?|clôturée?s?|committée?s?)\b", r"\b(?:terminée?s?|corrigée?s?|créée?s?|appliquée?s?|committée?s?|clôturée?s?|mis(?:e|es)? à jour|complet(?:s|e|es)?)\b\s*(?:[:.!(-]|et\b|sur\b|avec\b|dans\b|$)", r"\bavec succès\b", r"^(?:c'est fait|fait|terminé|voilà)\b", r"\btests? (?:\w+ )?passent\b",
        r"\b(?:habe|haben|wurde|wurden|ist|sind)\b.{0,120}\b(?:implementiert|hinzugefügt|behoben|aktualisiert|erstellt|geändert|entfernt|umgesetzt|abgeschlossen|angepasst|refaktoriert|ersetzt|verschoben|korrigiert|ergänzt|fertig|erledigt|eingebaut|umbenannt|gelöscht|geschrieben|fertiggestellt|umgestellt)\b", r"^(?:fertig|erledigt|abgeschlossen|umgesetzt|behoben)\b", r"\berfolgreich\b", r"\btests (?:\w+ )?(?:bestehen|laufen durch|sind grün|grün)\b",
        r"\bho (?:\w+ )?(?:implementato|aggiunto|corretto|creato|aggiornato|rimosso|modificato|completato|sistemato|risolto|sostituito|spostato|scritto|applicato|rifattorizzato)\b", r"^(?:fatto|completato|finito)\b", r"\bcon successo\b", r"\b(?:è stat[oa]|sono stat[ie])(?: \w+){0,2} (?:implementat|aggiunt|corrett|creat|aggiornat|rimoss|completat|risolt)", r"\b(?:tutti i )?test (?:\w+ )?passano\b",
        r"\bя (?:\S+ )?(?:добавил|исправил|реализовал|обновил|создал|удалил|изменил|завершил|переписал|заменил|переименовал|перенёс|настроил)", r"^(?:готово|сделано|исправлено|завершено|выполнено|добавлен[оаы]?|реализован[оаы]?|обновлен[оаы]?)", r"(?:успешно|тесты (?:\S+ )?(?:проходят|прошли|зел[её]ные))",
        r"\b(?:is|are|was|were) (?:now |all |both |finally )?(?:gone|fixed|resolved|solved|cleared|eliminated|up and running)\b[.,;!]?", r"\btook the liberty\b", r"\b(?:should|can|may) now (?:see|be able|have|access|find|use)\b",
        r"\b(?:renders?|runs?|starts?|builds?|compiles?|loads?|works?)\b[^.]{0,30}\b(?:without (?:any )?(?:errors?|warnings?|issues|problems)|cleanly|correctly|fine|properly|perfectly|again)\b", r"^(?:it |everything |that )?(?:all|looks?|is) (?:looks? )?good[!.]*$|\btook care of\b|\bgot rid of\b", r"\b(?:is|are) (?:now )?(?:saved|written|recorded) (?:in|at|under|to)\b", r"^(?:finished|completed|done|delivered|shipped|accomplished)\b", r"^(?:\w+ ){1,3}(?:concluíd|finalizad|aplicad|implementad|corrigid|realizad|feit|completad|terminad|corregid|actualizad|hech|list)[oa]s?\b", r"\b(?:sont|est) (?:désormais |maintenant )?(?:à jour|en place|opérationnel\w*|prête?s?)\b", r"\b(?:build|compilation|lint|test\w*|suite)\b.{0,20}\b(?:passent?|pasan?|passam?|passano|passa|ok|verts?|verdes?|grün|läuft|laufen)\b", r"已(?:经|经)?(?:按.{0,10}|根据.{0,10}|成功|全部|都|将.{0,20})?(?:调整|优化|替换|重命名|合并|推送|保存|修正|完善|改为|移动|启用|集成|补充|增加|改进|清理|生成|整理)", r"(?:调整|优化|替换|重命名|合并|推送|保存|修正|完善|移动|集成|补充|增加|改进|清理|整理|删除|新增|加上|修好|改好|改成|换成|写好|做好)了", r"(?:しました|済みです|いたしました|できました)[。.]?\s*$", r"(?:했습니다|되었습니다|됐습니다|완료)[.]?\s*$",
        concat!(r"^[^:.,?]{1,50}: (?:\w+ )?", changed!(), r"(?: \S+){1,}"),
        r"\b(?:is|are|has|have|does|do|can) now\b", r"\bnow (?:is|are|have|do|run|go|live|get|take|start|return|sit|support|cover)s?\b", r"\b(?:is|are) (?:\w+ ){1,4}now[.,;!]", r"\bno longer \w+", r"\bas (?:you )?(?:requested|asked|instructed|wished)\b", r"\b(?:in sync|up to date) (?:again|now)\b", r"\b(?:feature|change|fix|option|flag|support|test)s?\b[^.]{0,40} (?:is|are) in\b[.,;!]", r"^(?:\w+ )?(?:new|changed|modified|added|updated|touched|created) files?\b", r"\b(?:est|sont|fonctionne|affiche|utilise) (?:maintenant|désormais)\b", r"\b(?:é|está|são|estão|funciona|usa|valida|mostra) agora\b|\bagora (?:é|está|são|estão|funciona|usa|valida|mostra|exibe|aceita)\b", r"\bahora (?:es|está|están|son|funciona|usa|muestra|valida|acepta)\b", r"\b(?:ist|sind|zeigt|läuft|laufen|funktioniert|verwendet|nutzt) (?:jetzt|nun)\b", r"\b(?:è|sono|funziona|usa|mostra) (?:ora|adesso)\b|\b(?:ora|adesso) (?:è|sono|funziona|usa|mostra)\b", r"теперь (?:\S+ )?(?:работает|использует|показывает|есть|поддерживает)",
        r"\b(?:now|again) [a-z]{2,}[^s\W]s\b", r"\b(?:prüft|prüfen|zeigen|enthält|unterstützt|liefert|akzeptiert|speichert|lädt|nutzen) (?:jetzt|nun)\b", r"\bya (?:funciona|genera|muestra|valida|envía|usa|acepta|guarda|permite)\b", r"\bworks (?:on|with|in|for|across|everywhere) (?:all|both|every|each|the|any)\b", r"^(?:i )?(?:ran|wrote|put|cut|took out|threw out|set up|tore out|broke up|hid|built|made) (?:the|a|an|all|both|every|two|three|four|some|your|it)\b", r"^(?:docs?|code|tests?|backend|frontend|ui|api|cli|build|config): (?:new|added|\w+ed) ", r"\b(?:reports?|shows?|with) (?:0|zero|no) (?:vulnerabilities|errors|warnings|issues|problems|failures)\b", r"^(?:slice|step|phase|task|story|milestone|part|item|loop|iteration|stage) [#\w.-]+(?: of \d+)? (?:is )?(?:complete[d]?|done|finished|delivered|implemented)\b", r"(?:首屏|速度|性能).{0,12}(?:降到|提升|优化)",
        r"^(?:the|this|your|it|users?|they|all|each|every)\b[^.]{0,40}\b(?:will|should) now \w+",
        r"\b(?:has|have|got|gained|carr(?:y|ies)) (?:a|an|two|three|four|\d+|its own) (?:\w+ )?new\b|\b(?:has|have) new\b", r"\b(?:down|up) from \S*\d|\binstead of \d", r"\b(?:we're|i'm|i am|we are) (?:all )?done\b", concat!(r"[:,;] (?:[\w`#-]+ ){1,3}", changed!(), r"\s*(?:[.;,]|$)"), r"\b(?:recap|summary|overview|log)\b.{0,20}\b(?:of|for) (?:this|the|today's|my) (?:session|work|changes?|day|iteration|loop)\b", r"\bagora (?:\w+ )?(?:usam?|rodam?|funcionam?|mostram?|validam?|aceitam?|exibem?|retornam?|carregam?|permitem?)\b", r"\bse (?:le |les )?[a-záéíóúñ]{3,}(?:ó|aron|ieron)\b", r"(?:都|均|全部)?已(?:经)?(?:迁移|升级|转换|切换|恢复|拆分|抽取|上线|发布|安装|接入|对接|同步|重写|统一|加上)",
        r"^(?:the (?:new|updated|fixed|revised) (?:\w+ )?|it |that |everything )works\b",
    ];
    /// A claim in a regular form, with any verb: "I've …ed", "has been …ed", "…ed the …".
    CLAIMED = [
        r"\b(?:i|we)(?:'ve| have|'d)?(?: \w+ly| now| just| also| already| since| then| both| all)* (?:[a-z]{2,}ed|took care of|put|split|cut|got rid of|rewrote|undid|tore|brought|taught|turned|made|left out|sped up)\b",
        r"\b(?:has|have)(?: \w+ly| now| all| both| also| since)* been(?: \w+ly)? [a-z]{2,}(?:ed|ten|oved|uilt|ut|lit|own|ept)\b",
        r"^(?:(?:successfully|now|also|finally|then|and)[, ]+)*[a-z]{2,}ed (?:up |out |over |off )?(?:the|a|an|all|both|every|each|two|three|four|five|\d+|some|several|missing|new|unused|`x`|x|this|that|your|its|support|tests?|docs|documentation)\b",
        r"^(?:`x`|[a-z-]+)(?: `?[\w-]+`?){0,4} (?:re-?)?(?:added|fixed|updated|created|refactored|removed|replaced|renamed|moved|implemented|rewritten|resolved|corrected|cleaned up|simplified|merged|pushed|committed|installed|configured|extended|migrated|deleted|restored|adjusted|bumped)\b (?:in|to|from|on|with|for|and|at|as|into|across|under|so)\b",
        r"\b(?:he|hemos) (?:\w+ )?\w{2,}(?:ado|ido|cho|rto|sto)\b", r"\bj'ai (?:\w+ )?\w{2,}(?:é|i|u|is|it|ert)e?s?\b", r"\bho (?:\w+ )?\w{3,}(?:ato|uto|ito|tto|so|sto)\b",
        r"^(?:eu |já |pronto[,.!] )*\w{3,}(?:ei|i) (?:o|a|os|as|um|uma|dois|duas|todos|todas|também|x|`x`|no|na)\b", r"\b(?:behoben|geändert|angepasst|ergänzt|hinzugefügt|entfernt|umgesetzt|ersetzt|erstellt|korrigiert|implementiert|aktualisiert) (?:habe|haben|worden)\b",
        r"\b(?:foi|foram|fue|fueron|ha sido|han sido) (?:\w+ )?\w{2,}(?:ad|id|t)[oa]s?\b", r"\b(?:a|ont) été (?:\w+ )?\w{2,}(?:é|i|u|t|s)e?s?\b", r"\b(?:è stat[oa]|sono stat[ie]) (?:\w+ )?\w{2,}t[oaie]\b", r"\b(?:wurde|wurden)\b[^.]{0,80}\b(?:ge\w+t|ge\w+en|\w+iert|\w+(?:ge|be|er|ver|ent|um)\w+t)\b[.!;,]?$",
    ];
    /// Verbs of looking, trying, waiting and reporting, which claim no change.
    CLAIMED_NOT = [
        r"\b(?:(?:re-?)?(?:review|check|look|verif|analy[sz]|examin|inspect|investigat|notic|identif|tri|attempt|want|need|request|ask|wait|expect|receiv|encounter|experienc|observ|explor|search|scann|list|explain|describ|mention|discuss|consider|recommend|suggest|propos|plann|start|continu|proceed|us|test|confirm|compar|trac|reproduc|stopp|fail|reject|deni|block|grant|approv|cover|assum|learn|load|call|pars|outlin|reach|exhaust|return|summari[sz]|present|provid|shar|past|bas|relat|estimat|detect|requir|allow|permitt|design|intend|stor|nam|work|mark as|hop|decid|believ|realiz|realis|trigger|queri|clarif|determin|assess|audit|evaluat|read|hear|miss|introduc|remain|clos|open|answer|authori[sz]|declin|refus|prevent|disabl|interrupt|gather|enabl|agre|lack|happen|appear|seem|contain|includ|suppos|known|seen|given|limit|restrict|relas|hit|paus|propos|advis|concern|compil|show|show|not|not)(?:ed|ied)|(?:need|seed|speed|feed|exceed|proceed|indeed|embed|red|shed|bed))\b",
        r"\b(?:he|hemos) (?:\w+ )?(?:revisado|intentado|podido|visto|encontrado|leído|analizado|identificado|verificado|comprobado|probado|examinado|querido|recibido|notado|sido|estado|tenido)\b", r"\bj'ai (?:\w+ )?(?:vu|lu|vérifié|analysé|examiné|essayé|trouvé|pu|eu|regardé|identifié|remarqué|reçu|besoin|tenté|compris|parcouru|consulté|constaté)\b", r"\bho (?:\w+ )?(?:letto|visto|verificato|analizzato|controllato|trovato|provato|tentato|capito|notato|esaminato|bisogno)\b",
        r"^(?:eu |já )*(?:encontrei|verifiquei|analisei|tentei|consegui|li|vi|revisei|identifiquei|notei|percebi|entendi|examinei|procurei|olhei|aqui|foi|oi)\b",
        r"\b(?:foi|foram|fue|fueron|ha sido|han sido|a été|ont été|è stat[oa]|sono stat[ie]) (?:\w+ )?(?:encontrad|identificad|negad|denegad|rejeitad|rechazad|bloquead|recusad|visto|possível|posible|analisad|analizad|verificad|revisad|refus|rejet|trouv|bloqu|vérifi|analys|trovat|negat|rifiutat|possibil)", r"\b(?:wurde|wurden)\b.*\b(?:abgelehnt|verweigert|blockiert|gefunden|geprüft|analysiert|untersucht|nicht)\b",
    ];
    /// An introduction to something shown elsewhere, not to an action.
    POINTS = [r"\b(?:above|below|following|here(?:'s| is| are)|attached|as follows|summary|results?|examples?)\b"];
    /// A sentence that is quoted as a whole.
    QUOTED = [r#"^\s*["']\S.*["'][.]?\s*$"#];
    /// An explicit request.
    PLEASE = [r"\b(?:please|kindly|por favor|bitte|veuillez|per favore|пожалуйста)\b", r"请|請|ください|주세요"];

    /// A question that asks the user whether or how to continue.
    DIRECT_QUESTION = [r"\b(?:should|may|shall|can|could|would|do|are|will|did) (?:i|you|we)\b.*\?"];

    /// A report of a change in the first person.
    FIRST_PERSON = [r"\b(?:i|we) (?:was able to|were able to|managed to|went ahead and)\b", r"\b(?:i|we)(?:'ve| have) gone ahead and\b", concat!(r"\b(?:i|we)(?:'ve| have|'d)?(?: \w+ly| now| just| also| already| since| then| \w+ and)* ", changed!(), r"\b")];
    /// A report of a change by the speaker.
    OWN_WORK = [
        concat!(r"\b(?:i|we)(?:'ve| have|'d)?(?: \w+ly| now| just| also| already| since| then| \w+ and)* ", changed!(), r"\b"),
        concat!(r"^(?:(?:successfully|now|also|all|just|finally|then|and)[, ]+)*", changed!(), r"\b"),
        r"已(?:经)?(?:成功)?(?:实现|修复|添加|更新|创建|修改|删除|重构)", r"(?:し|いたし)ました", r"(?:했습니다|하였습니다)",
        r"\b(?:implementei|adicionei|corrigi|criei|atualizei|removi|alterei|refatorei|ajustei|implementé|agregué|añadí|corregí|creé|actualicé|eliminé|modifiqué)\b", r"\b(?:he|hemos|j'ai|ich habe|wir haben|ho) (?:\w+ )*\w{4,}(?:ado|ido|é|t|to)\b", r"\bя (?:\S+ )?\S+л\b",
    ];
    /// Cancels a report of work: it is conditional, negated or in the future.
    DONE_NOT = [
        concat!(r"\b(?:not|n't|never)\b(?: yet| been| actually| fully| been yet)* (?:", changed!(), r"|complete|done|ready)\b"), r"\b(?:once|until|unless|if|before|whether|to be|will be|would be|needs to be|need to be|must be|should be|can be|could be|going to be|haven't|hasn't)\b.{0,60}\b(?:complete|done|fixed|implemented|added|updated|created|applied|finished|ready|passing|pass|resolved|committed|changed|wired|approved|granted|moved|built|tests?)", r"\bnothing (?:has been|was|is)\b", r"\bno (?:files?|changes|code|edits|modifications?|production|source)\b", r"\bnone of\b", r"\b(?:can\'t|cannot|couldn\'t|could not|unable to) (?:get|make)\b", r"\breverted (?:my|all|the|these|those|any|every\w*) (?:\w+ )?(?:changes?|edits?|attempts?|modifications?)\b", r"\byou(?:'ve| have)\b", r"\bafter (?:making|that|this|you)\b", r"\bnot (?:yet|started|implemented|done|complete)\b", r"\b(?:so|that) (?:i|we) can\b", r"\bready to (?:start|begin|proceed|implement|continue|help|work)\b", r"\bas (?:requested|described|specified)\b.*\bi'll\b",
        r"(?:还没|尚未|没有|还未|還沒|未)(?:.{0,4})(?:完成|实现|修复|修改|應用|应用)", r"(?:ていません|ありません)", r"(?:지 않았|아직)", r"\b(?:ainda não|aún no|todavía no|pas encore|noch nicht|non ancora|ещё не|еще не)\b",
        r"\b(?:yesterday|(?:last|this) (?:week|month|year|night|morning)|(?:\w+|\d+) (?:days?|weeks?|months?|commits?|hours?|years?|releases?|versions?) ago|upstream|(?:as of|since|until) (?:v?\d|version|now))\b", r"\b[1-9]\d*(?: \w+)? (?:fail(?:ed|ing|ures?)|errors?)\b", r"\b(?:couldn't|could not|cannot|can't|won't|wasn't|weren't|isn't|aren't|failed to|unable to|not able to|neither|nobody)\b(?: \w+){0,3} (?:\w+ed|made|done|built|written|set|able|finish|complete)\b|\bnowhere\b", r"^(?:as of now|currently|at present)\b",
        r"^(?:once|if|when|whenever|as soon as|unless|until)\b", r"\bnow (?:running|waiting|in progress|executing|processing|active|blocked)\b", r"\b(?:is|are|can) now (?:the|a|an|about|what|why|time|going|clear|obvious|visible|only|proceed|start|begin|continue|move|implement|work on)\b", r"\bno longer (?:than|needed|necessary|required|exists?|available|supported|maintained)\b", r"\b(?:your|this|the) (?:\w+ )?(?:pr|code|work|review|understanding|approach|branch|implementation)\b[^.]{0,30}\b(?:is|looks|seems) (?:\w+ )?(?:good|correct|solid|clean\w*|fine|right|great)\b",
        r"\bse (?:encontr|detect|produj|observ|deneg|rechaz|bloque|neg|intent|identific)(?:ó|aron|ieron|o)\b",
    ];
    /// A report of looking rather than changing: a review, an audit, an analysis.
    LOOKED = [
        r"\b(?:review|audit|analysis|investigation|assessment|research|exploration|triage|diagnosis)\b[^.]{0,40}\b(?:is |has been )?(?:complete[d]?|done|finished|recorded|concluded)\b", r"^(?:completed?|finished) (?:the |a |an |my )?(?:\w+ ){0,4}(?:review|audit|analysis|investigation|assessment|research)\b", r"\bno (?:production |source )?(?:code|files?) (?:was|were|has been|have been) (?:modified|changed|touched|edited)\b",
        r"^(?:i|we)(?:'ve| have)? (?:reviewed|audited|analy[sz]ed|investigated|examined|looked at|read|inspected)\b",
        r"^(?:i|we)(?:'ve| have)? (?:gone|went|been|read) (?:through|over|into)\b",
    ];

    /// An announcement of the next action.
    INTENT = [
        r"\b(?:i'll|i will|i'm going to|i am going to|i'm gonna|i'm about to|i am about to|i shall|we'll|we will|we're going to|we are going to|imma)\b",
        r"\b(?:let me|let's|let us|lemme)\b", r"^(?:\w+[,.!]? )?(?:let me|let's)\b",
        concat!(r"\b(?:i|we) (?:now |first |also |just |still |then )?(?:need to|should|must|have to|want to|plan to|intend to|ought to|can now|would like to|'d like to|proceed to|am now) (?:now |first |also |just |then |actually )?", act!(), r"\b"),
        r"(?:^(?:\w+[,.!:]? ){0,3}|[,;:-] (?:so |and |now )?|\band )i(?:'m| am)(?: now| just| currently| also)? (?:\w+ing)\b", r"\bi (?:proceed|start|begin|continue|move on|get started)\b",
        r"\b(?:pushing|running|starting|doing|working on|applying|implementing|fixing|updating|continuing|proceeding)\b.{0,40}\bnow\b", r"\bnow (?:proceeding|starting|running|moving|continuing|implementing|applying|updating|fixing|to \w+)\b",
        r"\b(?:on it|will do|give me (?:a |some |just )*(?:few )?(?:moments?|minutes?|sec\w*|time)|one (?:moment|sec\w*)|hang on|hold tight|bear with me|stay tuned|getting started|will get (?:started|back|right)|i'm on it|be right back|back (?:soon|shortly))\b", r"\b(?:i'd|i would) (?:start|begin|approach|first|then|implement|add|change)\b", r"\b(?:haven't|have not|not yet|yet to) (?:\w+ )?(?:applied|started|implemented|begun)\b", r"\b(?:haven't|have not) (?:\w+ )?(?:made|changed|written|modified|edited|touched)\b.*\byet\b", r"\b(?:still (?:have|need) to|remains to be|about to)\b", concat!(r"\btime to ", act!(), r"\b"),
        concat!(r"^(?:then |and |so )?will (?:now |then )?", act!(), r"\b"),
        r"(?:我(?:将|会|要|来|先|现在|打算|准备|计划|接下来|這就|这就|马上|將|會|來|現在|準備|計劃|需要先|需要)|让我|讓我|我们(?:来|将|先|开始|需要)|我們(?:來|將|先|開始)|接下来|接下來|下一步|首先|现在(?:开始|来|我|让|去|就)|現在(?:開始|來|我|讓)|正在|开始(?:实现|修改|编写|执行|处理|创建|更新|检查|实施|重构|添加)|開始(?:實作|修改|執行|處理)|即将|马上|準備|准备(?:开始|修改|实现)|继续(?:实现|修改|执行|处理)|先(?:看|检查|查看|读|了解|分析)|计划如下|計劃如下|实施计划|实现计划)",
        r"(?:ます|ましょう|つもりです|予定です|いきます|始めます)[。.!:]?\s*$", r"(?:これから|次に|まず|今から|それでは)", r"(?:하겠습니다|할게요|겠습니다|할 ?예정|하려고|하려 합니다|시작합니다|진행합니다|해보겠|볼게요|할 것입니다|하자)", r"(?:이제|먼저|다음으로|우선|그럼) ",
        r"\b(?:vou|irei|vamos|deixe-me|deixa eu|deixa-me|farei|pretendo|começarei|iniciarei|começo|já volto|estou \w+ndo|aguarde)\b", r"\b(?:agora|primeiro|em seguida|a seguir)\b.{0,12}\b(?:vou|irei|vamos|preciso)\b", r"^(?:agora |então )?(?:iniciando|começando|prosseguindo|executando|aplicando|implementando|criando|atualizando|corrigindo|verificando|rodando|ajustando|continuando)\b", r"\bpreciso (?:verificar|criar|ajustar|corrigir|implementar|atualizar|ver|ler|modificar|adicionar|entender|analisar)\b", r"\bplano(?: de \w+)?:?$",
        r"\b(?:voy a|vamos a|procedo a|procederé|déjame|déjeme|permíteme|permítame|empezaré|comenzaré|empiezo|comienzo|paso a|sigo con|me pongo|estoy \w+ndo)\b", r"\b[a-záéíóúñ]{3,}(?:aré|eré|iré)\b", r"\b(?:ahora|primero|a continuación|luego)\b.{0,12}\b(?:voy|vamos|procedo|necesito|debo)\b", r"^(?:ahora )?(?:iniciando|comenzando|ejecutando|aplicando|implementando|creando|actualizando|corrigiendo|verificando)\b", r"\bnecesito (?:verificar|crear|ajustar|corregir|implementar|actualizar|ver|leer|revisar|modificar|entender|agregar)\b",
        r"\b(?:je vais|nous allons|on va|je m'apprête|laissez-moi|laisse-moi|commençons|je commence|je procède|passons|je lance|je passe|je m'en occupe|je continue|voyons|regardons)\b", r"\bje (?:\w+ )?\w{3,}rai\b", r"\b(?:maintenant|d'abord|ensuite),? je\b", r"^(?:maintenant|bon|ok|alors|d'accord|ensuite),? \w+ons\b", r"\b(?:voici|mon) (?:le |mon )?plan\b", r"\bil faut que je\b|\bje dois (?:d'abord )?\w+er\b",
        r"\bich (?:werde|beginne|fange|starte|mache|setze|gehe|passe|schaue|füge|erstelle|implementiere|prüfe|lege|aktualisiere|ändere|kümmere|nehme|führe|baue|schreibe|lese|muss|will|möchte)\b", r"\b(?:werde|beginne|fange|setze|starte|implementiere|passe|füge|erstelle) ich\b", r"\b(?:lass(?:en sie)? mich|lass uns|als nächstes|zuerst|im nächsten schritt|wir werden)\b",
        r"\b(?:procedo|inizio|comincio|adesso|ora) (?:a |con |il |la |l'|implemento|aggiungo|modifico|creo)", r"\b(?:sto per|vado a|lasciami|fammi|iniziamo|procediamo|vediamo|per prima cosa)\b", r"\b(?:creerò|implementerò|aggiungerò|modificherò|correggerò|inizierò|procederò|aggiornerò|farò|scriverò|verificherò|eseguirò|controllerò)\b",
        r"(?:сейчас|теперь|сначала|далее|затем|начинаю|приступаю|продолжаю|перехожу|давайте|собираюсь|планирую|буду|запускаю|проверяю)\b", r"\bя (?:\S+ )?(?:добавлю|исправлю|реализую|обновлю|создам|удалю|изменю|начну|проверю|посмотрю|напишу|внесу|запущу|сделаю|перепишу|изучу)", r"^(?:добавлю|исправлю|реализую|обновлю|создам|изменю|начну|проверю|посмотрю|напишу|внесу|запущу|сделаю)",
        r"\b(?:zamierzam|zacznę|teraz (?:dodam|zaimplementuję|poprawię)|dodam|poprawię|ik ga|ik zal|laat me|laten we|jag ska|jag kommer att|şimdi|yapacağım|edeceğim|ekleyeceğim|başlıyorum)\b",
        r"\b(?:je m'(?:occupe|attaque|y mets)|j'(?:ajoute|applique|implémente|analyse|examine|exécute|inspecte|adapte|enlève|étends|ouvre|écris|effectue)|je (?:mets|corrige|crée|vérifie|modifie|regarde|lis|teste|reprends|prépare|remplace|supprime|refactorise|relance|cherche|consulte|déplace|termine|complète|poursuis|fais))\b", r"\b(?:ahora|primero|luego|después|a continuación|enseguida),? (?:\w+ )?(?:reviso|actualizo|corrijo|agrego|añado|creo|implemento|ejecuto|leo|busco|verifico|compruebo|analizo|ajusto|aplico|modifico|pruebo|arreglo|escribo|cambio|elimino|muevo|hago|preparo|configuro|continúo|termino|completo)\b", r"^(?:reviso|actualizo|corrijo|agrego|añado|implemento|ejecuto|busco|verifico|compruebo|aplico|modifico|arreglo)\b", r"\b(?:agora|primeiro|depois|em seguida),? (?:eu )?(?:verifico|atualizo|corrijo|adiciono|crio|implemento|executo|leio|analiso|ajusto|aplico|modifico|testo|escrevo|removo|rodo|faço|preparo|configuro|termino)\b", r"\b(?:jetzt|nun|zuerst|dann|anschließend|danach|gleich|als nächstes),? \w+e? ich\b", r"\bich \w+e (?:jetzt|nun|zuerst|gleich|zunächst|erst|mich|mir|als nächstes)\b", r"\b(?:ora|adesso|prima|poi|quindi|subito),? (?:\w+ )?(?:controllo|verifico|aggiorno|correggo|aggiungo|implemento|creo|modifico|leggo|scrivo|eseguo|lancio|sistemo|analizzo|guardo|rimuovo|sposto|completo|inizio|procedo|preparo|faccio|configuro)\b", r"^(?:controllo|verifico|aggiorno|correggo|aggiungo|implemento|leggo|eseguo|sistemo|analizzo|rimuovo|procedo)\b", r"\b(?:needs?|have|has|got) to be (?:\w+ )?done (?:first|next|now)\b",
        r"^(?:now |next |then |and |so )?(?:on ?to|over to|off to|back to|up next)\b", r"\b(?:taking|tackling|handling|doing) (?:them|these|those|it|this|that|each) (?:one|now|first|next|step|in turn)\b", r"\b(?:eta|stand by)\b[: ]",
        r"\bhang tight\b", r"[,;-] (?:so |and )?(?:now )?(?:moving on|continuing|proceeding|switching|heading|going) (?:on |over |ahead )?(?:to|with)\b",
    ];
    /// An announcement by a verb in -ing at the beginning of prose.
    INTENT_ING = [
        r"^(?:now |next,? |first,? |ok(?:ay)?[,.:!]? (?:- )?|great[,.!] |on it[,.!:-]* |currently |and |just |then )*(?:proceeding|starting|beginning|moving|continuing|going|working|running|pushing|setting|creating|implementing|applying|adding|fixing|updating|writing|building|making|editing|filing|checking|reading|reviewing|exploring|looking into|investigating|digging|mapping|refactoring|removing|replacing|installing|launching|kicking|getting|opening|preparing|executing|verifying|tracing|rewriting|modifying|wiring|drafting|generating|searching|planning|scanning|analy[sz]ing|testing|deploying|committing|merging|moving|migrating|tackling|gathering|diving|jumping|resuming|spinning|converting|extracting|patching|splitting|changing|switching|swapping|cleaning|wrapping|porting|bumping|renaming|rebasing|sending|finishing|adjusting|correcting|expanding|extending|focusing|compiling|configuring|deleting|inspecting|installing|iterating|locating|monitoring|picking|pulling|rerunning|retrying|simplifying|tracking|trying|tweaking|uploading|downloading|fetching|validating)\b",
        r"^\w+ing\b.{0,40}\bnow\b[.!:]*$",
    ];
    /// Such a verb as the subject of a report.
    INTENT_ING_NOT = [r"^[^,.:;]*\b(?:shows?|showed|confirm(?:s|ed)|reveal(?:s|ed)|works?|worked|pass(?:es|ed)|succeed(?:s|ed)|fail(?:s|ed)|is|are|was|were|has|have|completed?|done|gives?|gave|takes?|took|requires?|needs?|would|should|can|cannot)\b", r"^\w+: \S", r"^\w+ing (?:\S+ ){0,8}(?:saves|makes|means|helps|breaks|avoids|leads|causes|allows|lets|adds|removes|reduces|keeps|ensures|prevents|improves|increases|hides|costs|brings|seems|looks|remains|may|might|will|won't|does|could)\b"];

    /// An announcement without a subject, which may also be advice or an outlook.
    INTENT_WEAK = [
        concat!(r"^(?:(?:ok(?:ay)?|now|next|first|right|sure|so|then|finally)[,.!:]?|(?:great|good|perfect|alright|excellent)[,.!:]) (?:\w+ )?(?:to |step is to )?", act!(), r"\b"),
        r"\b(?:the|this|my) (?:implementation|plan|approach|solution|refactor|fix|strategy|next step|next steps|first step) (?:will|would|is to|is going to|are to)\b", r"\bhere(?:'s| is)(?: \w+)? (?:what|how) (?:i'll|i will|i'm going to|i plan to|we'll|i'd|i would|i intend)\b", r"\bhere(?:'s| is|'re| are) (?:my|the|a|our)(?: \w+){0,3} (?:plan|approach|strategy|steps|roadmap|outline|proposal)\b", r"\b(?:my|the) (?:\w+ )?plan(?: \w+)?(?: is|:| of)", r"\bplan of (?:attack|action)\b",
        r"^next up\b",
    ];
    /// Cancels an announcement: it is waiting, courtesy or explanation, or it depends on the user.
    INTENT_NOT = [
        r"\b(?:let me|i'll|i will|we'll) (?:know|wait (?:for|until)|ask|be happy|be glad|explain|summari[sz]e|hold|pause|stop|leave (?:it|this|that|the rest))\b", r"\blet me (?:provide|give|share|present|show) (?:you )?(?:an? |the |my )?(?:\w+ )?(?:summary|overview|report|status|recap|explanation)\b", r"\b(?:if|once|when|after|unless) you\b", r"\bi(?:'m| am) (?:\w+ )?(?:leaving|assuming|seeing|missing|hoping|guessing|wondering|having)\b", r"\bwill be (?:ready|available|shown|used|applied|merged|visible)\b", r"\b(?:this|that|it|which|users?|you) will\b[^.]*$", r"(?:(?:て|で)い|でき|あり|なり|ござい|思い|おり|られ|され)ます[。.!]?\s*$", r"(?:接下来|接下來|下一步|后续|後續)(?:您|你)?(?:可以|可|建议|建議|如果)", r"\bi(?:'m| am) (?:stopping|pausing|blocked|stuck|done|finished|unable)\b",
        r"\b(?:must|have to|need to) (?:report|admit|stop|decline|conclude|say)\b", r"\bi (?:won't|will not)\b",
        r"(?:无法|不能|無法|没法|难以)(?:继续|繼續|完成|执行|执行)", r"\bnothing\b.{0,20}\bremains?\b",
        r"\bi(?:'ll| will) (?:just |simply |then |also |now )*(?:leave|exit|quit|stop|end (?:here|the)|finish here|skip|not|keep (?:an eye|it|them|everything|this|that|the|watching|monitoring)|be (?:around|here|happy|glad|available|back if)|have to (?:stop|leave|skip)|gladly|look forward)\b", r"\b(?:let's|let us|let me) (?:say|assume|suppose|imagine|call|pretend|consider|explain|clarify|answer|be clear|know)\b", r"\byou (?:can|could|may|might|should)\b",
        r"\bi(?:'m| am) (?:\w+ )?(?:giving up|abandoning|at a loss|out of)\b",
    ];
    /// Steps that check or submit work instead of doing it.
    WRAP_UP = [r"\b(?:run|running|verify|verifying|test|testing|tests|confirm|validate|check|build|commit|push|lint|review|next (?:loop|iteration|session|task|slice|story)|summar\w+)\b"];
    /// Work that is left for a later turn.
    LATER = [r"\b(?:in|during|for|with) (?:the|a|an|my|our) (?:next|following|future|later|subsequent|separate) (?:loop|iteration|session|turn|run|slice|story|task|phase|pr|step|round)\b", r"\bnext (?:loop|iteration|session|turn|run) (?:will|is|can|should|continues)\b"];
    /// A message, heading or introduction that calls itself a plan.
    PLAN_NAME = [
        r"^(?:(?:here(?:'s| is) )?(?:the |my |our |a )?(?:\w+[- ]){0,3})?(?:plan|roadmap|game plan|strategy|approach|todo list|to-do list)(?: of (?:attack|action)| for [^.]{1,60}| to [^.]{1,60})?\s*:?$", r"^(?:the )?(?:\w+ )?plan\s*:", r"^plan (?:the|out|how)\b", r"\b(?:plan|approach)\b.*:$", r"^(?:计划|計劃|方案|实施步骤|実装計画|計画|계획|구현 계획|plano|plan de \w+|piano|umsetzungsplan|план)\s*:?", r"^(?:plano|plan|piano)(?: \w+){0,3}:?$",
    ];
    /// Advice to a person who will do the work, as in a chat.
    ADVICE = [
        r"\b(?:you (?:can|could|should|may|might|need to|will need|'ll need|would)|try (?:running|using|to|adding|these|this|the)|can you try|make sure (?:to|you|that)|remember to|consider)\b", r"\bhere(?:'s| is| are)(?: \w+){0,3} (?:fix|code|solution|version|example|implementation|function|snippet|how you)\b", r"\b(?:this|that|these|it) (?:should|would|will) (?:fix|resolve|help|ensure|handle|solve|work|make|prevent|allow)\b", r"\b(?:let me know if|feel free|suggestions?|i(?:'d| would) (?:recommend|suggest))\b", r"\bhope (?:this|that) helps\b",
    ];

    /// A notice from the API, the tool or the account, not a sentence by the agent.
    ERROR_NOTICE = [
        r"\bcredit balance is too low\b", r"\b(?:you've|you have|you) (?:hit|reached|exceeded|used)(?: up)?(?: all)? (?:of )?your\b.*\b(?:limit|quota|credits?|usage)\b", r"\b(?:usage|session|weekly|daily|hourly|rate|spending|message|request|token|5-hour|free|monthly|concurrency)[- ]limits?\b.{0,30}\b(?:reached|exceeded|hit|resets?|exhausted)\b", r"\brate[ -]?limit(?:ed|s)?(?:error)?\b.{0,30}$", r"\b(?:limit|quota)\b.{0,20}\b(?:reached|exceeded|exhausted)\b", r"\b(?:invalid|incorrect|missing|expired) (?:api|access|oauth|auth\w*|authentication) ?(?:key|token|credentials?)\b", r"\bplease run /login\b", r"\b(?:overloaded_error|overloaded|internal server error|service unavailable|bad gateway|gateway timeout|too many requests|resource_exhausted|insufficient_quota|rate_limit_error|authentication_error|invalid_request_error|api_error|permission_error)\b", r"\b(?:prompt|request|input|context|conversation)\b.{0,30}\b(?:too (?:long|large)|length exceeded|exceeds? (?:the )?(?:max\w*|context|limit))\b", r"\b(?:maximum context length|context (?:window|length) (?:exceeded|limit))\b", r"\b(?:reached )?max(?:imum)? (?:number of )?turns\b", r"\b(?:econnreset|econnrefused|etimedout|enotfound|socket hang up|fetch failed|connection (?:error|reset|refused|timed out|closed)|request timed out|request was aborted|request interrupted|stream (?:disconnected|closed|error|idle)|network error|tls handshake)\b", r"\b(?:not a valid model|model (?:\S+ )?(?:not found|does not exist|is not (?:available|supported))|unknown model|no such model|unsupported model)\b", r"\b(?:status(?: code)?|http|error|code|api error)\W{0,4}(?:4\d\d|5\d\d)\b", r"^(?:4\d\d|5\d\d) \w+", r"\bexecution error\b", r"^(?:timed out|timeout)\b", r"\borgani[sz]ation (?:has been|is) disabled\b", r"\b(?:token|session|credentials?|subscription|key|trial) (?:has |have |is )?expired\b", r"\b(?:exited|exit|terminated|failed) with (?:exit )?(?:code|status|signal)\b", r"\b(?:process|session|agent) (?:was )?(?:killed|terminated|crashed|aborted)\b", r"\bsegmentation fault\b", r"\b(?:killed|aborted|terminated)[.!]?$", r"\bno messages returned\b", r"\bunhandled(?:promise)?\s?rejection\b", r"\binterrupted by user\b", r"\bdefault credentials were not found\b", r"\bcommand (?:timed out|not found)\b", r"\btask timed out\b", r"\bout of (?:credits|tokens|quota|extra usage)\b", r"\bnot logged in\b", r"\bauthentication (?:failed|required|error)\b", r"\b(?:upgrade|purchase|buy)\b.{0,30}\b(?:plan|credits|pro)\b", r"\b(?:billing|payment) (?:issue|required|details|hard limit)\b", r"\b(?:safety|content) (?:policy|filter\w*)\b.{0,30}\b(?:violat\w+|block\w+|trigger\w+)\b", r"\bresponse was (?:blocked|filtered|truncated)\b", r"\btry again (?:at|in|later)\b",
        r"\b(?:issue|problem|error) with (?:the|your) (?:selected |current |configured )?(?:model|account|request|api|subscription|provider|connection)\b", r"\b(?:hit|exceeded|reached|over) (?:a|the|its|your|our) (?:\w+ ){0,3}(?:limit|quota|maximum|cap)\b", r"\b(?:possibly )?exhausted context\b", r"\b(?:account|organi[sz]ation|workspace|key|plan|user|team|project)\b[^.]{0,30}\b(?:does not|doesn't|do not|no longer) (?:have|has|include)\b[^.]{0,20}\b(?:access|permission|credits)\b", r"\b(?:high|heavy|unusual\w*|peak) (?:demand|load|traffic|usage)\b", r"\bconnection (?:failed|lost|interrupted|dropped|to \S+ (?:failed|lost|refused))\b", r"\b(?:check|verify) (?:your|the) (?:internet|network|vpn|proxy) ?(?:connection|settings)?\b", r"\b(?:did not|didn't|failed to) (?:provide|return|produce|generate|send) (?:any|a|an) (?:\w+ )?(?:messages?|response|content|output|reply)\b", r"\b(?:empty|no|invalid|malformed|incomplete|unexpected) (?:response|reply|completion|output)(?: (?:was )?(?:received|returned|generated))? (?:from|by) (?:the )?(?:\w+ )?(?:api|model|server|provider|llm)\b", r"\bexceed(?:ed|s)? (?:the |your )?(?:\S+ ){0,4}(?:maximum|limit|quota|budget|allowance)\b", r"\b(?:temporarily|currently) (?:unavailable|overloaded|disabled|limited|at capacity|over capacity)\b", r"\bat capacity\b", r"\b(?:contact|ask) (?:your|the) (?:administrator|admin|support)\b|\bcontact support\b", r"\b(?:request|correlation|trace) id: ?\S+", r"\b(?:access|permission) (?:denied|forbidden): ?\S", r"\b(?:model|deployment|engine|endpoint)\b[^.]{0,60}\b(?:may not exist|does not exist|doesn't exist|not found|not available|unavailable|deprecated|is not supported|decommissioned)\b",
        r"\bhad an error (?:while )?processing\b", r"\b(?:cap|limit|quota|budget|allowance) (?:has been |was )?(?:reached|exceeded|hit|exhausted)\b", r"^(?:unable|failed|could not|couldn't|cannot|can't) (?:to )?(?:connect|reach|authenticate|contact|fetch|load|start|establish)\b", r"\b(?:no response|timed out|timeout) (?:after|waiting)\b", r"\bunauthori[sz]ed\b",
        r"\b(?:retry|retries|attempts?)\b.{0,20}\bexhausted\b", r"\bno (?:api[- ]?key|credentials|auth\w*|token|login|session)\b.{0,20}\b(?:found|provided|configured|set|available)\b", r"\b(?:budget|balance|credits?|funds|quota|allowance)\b.{0,30}\b(?:reached|exceeded|exhausted|run out|ran out|depleted|insufficient|used up|spent)\b", r"\binsufficient (?:credits?|funds|balance|quota|permissions?)\b", r"\bis_error\W+true\b", r"\berror_during_execution\b", r"\bfailed to (?:start|connect|authenticate|initiali[sz]e|spawn|launch|generate)\b.{0,40}(?::|$)",
        r"^(?:\w+ )?(?:login|session|token|key|licen[sc]e|subscription|trial|certificate) (?:has |is )?(?:expired|invalid|revoked|missing)\b", r"^(?:invalid|bad|malformed|unsupported|illegal) (?:request|argument|parameter|model|option|response|input|value)\b", r"\bsomething went wrong\b", r"\bexhausted (?:your|the|all)\b.{0,30}\b(?:capacity|quota|credits?|limit|allowance|requests)\b", r"\b(?:quota|limit|usage|allowance) (?:will )?resets?\b", r"\b(?:api[ -]?key|token|credentials?|environment variable)\b.{0,20}\b(?:not (?:set|found|provided|configured)|is (?:missing|required|empty))\b", r"\brate-limited\b", r"\b(?:upstream connect error|disconnect/reset|remote end closed|broken pipe|core dumped)\b",
        r"\b(?:authentication|model|region|country|location|account|method|endpoint)\b.{0,40}\bnot (?:currently )?(?:supported|available in your)\b",
        r"\ban? (?:\w+ )?error (?:has )?occurred\b",
    ];
    /// The form of an error line: a class name or a prefix, then a colon.
    ERROR_SHAPE = [
        r"^\W*(?:api |fatal |internal |unexpected |unknown |tool |server |provider |stream |network )?error\b\s*[:(\d-]", r"^\W*[\w.]*\w(?:error|exception|fault)\b\s*[:(]", r"^\W*litellm\.\w+", r"^\W*traceback \(most recent call last\)", r"^\W*(?:error|fatal|panic)\b.{0,20}:", r"^\W*\{\s*.?(?:type|error)\W+(?:error|\{)", r"^\W*(?:thread '.*' panicked|node:internal|unhandledpromise|npm err!)", r"^\W*(?:the )?(?:api provider|request failed|failed to (?:connect|authenticate|fetch|load model|start))\b", r"^this error originated\b", r"^[\w./-]+: (?:line \d+: )?.{0,80}(?:command not found|not found|no such file or directory|permission denied|failed to run|cannot execute|is not recognized)", r"^usage: [\w./-]+ ", r"^\W*\[error\]\W", r"^error (?:when|while|during|from|in|connecting|communicating|calling)\b", r"^panic: ",
        r"^(?:aborted|cancelled|canceled|terminated|killed|interrupted|timed out|unauthori[sz]ed|forbidden)\b\s*[:.(]", r"^\W*\{.{0,200}\bis_error\W+true\b",
        r"^\w+(?:\.\w+)*(?:timeout|exhausted|unavailable|refused|unauthorized)\b\s*:",
    ];
    /// A sentence by a speaker, which is therefore not a notice.
    NARRATIVE = [r"\b(?:i|i've|i'll|i'd|let me|let's|we've|we'll) \w|\bi'm (?:[^s]|s[^o])"];
}
