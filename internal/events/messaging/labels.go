package messaging

// Labels are the words of the page's buttons and fields in a language, which no editor writes.
type Labels struct {
	Register string `json:"register"`
	Cancel   string `json:"cancel"`
	Ask      string `json:"ask"` // before Cancel
	Email    string `json:"email"`
	Name     string `json:"name"`
	SignIn   string `json:"sign_in"`
	Sent     string `json:"sent"`   // to the address that stands for *
	Places   string `json:"places"` // that are left, which stand for *
	Plans    string `json:"plans"`
	Keep     string `json:"keep"`    // the registration, instead of Cancel
	Another  string `json:"another"` // address than the one in Sent
	News     string `json:"news"`    // which a guest is sent too, or not
	Moved    string `json:"moved"`   // from the date and place that stand for *

	confirm, stale string // messages for readers who came by a link

	SentToMember string `json:"-"` // in place of Sent, where only members get a mail
	UnknownEmail string `json:"-"`
	TooMany      string `json:"-"`
	NoName       string `json:"-"`
	NoEmail      string `json:"-"`
}

// labelsOf are those of each language of the inbox button.
var labelsOf = map[string]Labels{
	"ar": {
		"التسجيل", "إلغاء التسجيل", "هل تريد إلغاء تسجيلك؟",
		"البريد الإلكتروني", "الاسم", "تسجيل الدخول",
		"أرسلنا رسالة إلى *. افتح الرابط الذي فيها لإتمام التسجيل.",
		"الأماكن المتبقية: *", "خيارات العضوية", "الإبقاء على التسجيل", "استخدام عنوان آخر",
		"إرسال النشرة الإخبارية إليّ أيضًا", "قبل التغيير: *",
		"بقيت خطوة واحدة: اضغط على الزر لإتمام التسجيل.",
		"استُخدم هذا الرابط من قبل أو انتهت صلاحيته. اطلب رابطًا جديدًا.",
		"إذا كان * عنوان عضو، فستصله رسالة الآن. افتح الرابط الذي فيها لإتمام التسجيل.",
		"لا يوجد عضو بهذا العنوان. تحقق من كتابته.",
		"محاولات كثيرة. حاول مرة أخرى لاحقًا.", "يُرجى كتابة اسمك.",
		"هذا ليس عنوان بريد إلكتروني صحيحًا. تحقق من كتابته.",
	},
	"cs": {
		"Zaregistrovat se", "Zrušit registraci", "Chcete zrušit svou registraci?",
		"E-mailová adresa", "Jméno", "Přihlásit se",
		"Na adresu * jsme poslali e-mail. Otevřením odkazu v něm se zaregistrujete.",
		"Volná místa: *", "Možnosti členství", "Ponechat registraci", "Použít jinou adresu",
		"Zasílejte mi také newsletter", "Původně: *",
		"Zbývá poslední krok: stiskněte tlačítko.",
		"Tento odkaz už byl použit nebo vypršel. Vyžádejte si nový.",
		"Pokud adresa * patří členovi, e-mail je na cestě. Otevřením odkazu v něm se zaregistrujete.",
		"Tuto adresu nemá žádný člen. Zkontrolujte, zda je správně.",
		"Příliš mnoho pokusů. Zkuste to později.", "Zadejte své jméno.",
		"Toto není e-mailová adresa. Zkontrolujte, zda je správně.",
	},
	"da": {
		"Tilmeld", "Afmeld", "Vil du afmelde dig?",
		"E-mailadresse", "Navn", "Log ind",
		"Vi har sendt en e-mail til *. Åbn linket i den, så er du tilmeldt.",
		"Ledige pladser: *", "Se medlemskaber", "Behold tilmelding", "Brug en anden adresse",
		"Send mig også nyhedsbrevet", "Flyttet fra: *",
		"Ét trin mangler: tryk på knappen for at tilmelde dig.",
		"Linket er allerede brugt eller udløbet. Bed om et nyt.",
		"Hvis * er et medlems adresse, er en e-mail på vej. Åbn linket i den for at tilmelde dig.",
		"Intet medlem har denne adresse. Tjek for tastefejl.",
		"For mange forsøg. Prøv igen senere.", "Skriv dit navn.",
		"Det er ikke en e-mailadresse. Tjek for tastefejl.",
	},
	"de": {
		"Anmelden", "Anmeldung stornieren", "Möchtest du deine Anmeldung stornieren?",
		"E-Mail-Adresse", "Name", "Einloggen",
		"Wir haben eine E-Mail an * geschickt. Öffne den Link darin, dann bist du angemeldet.",
		"Freie Plätze: *", "Mitgliedschaften ansehen", "Anmeldung behalten", "Andere Adresse verwenden",
		"Auch den Newsletter erhalten", "Verlegt, vorher: *",
		"Nur noch ein Schritt: Drücke auf „Anmelden“.",
		"Dieser Link wurde schon benutzt oder ist abgelaufen. Fordere einen neuen an.",
		"Wenn * einem Mitglied gehört, ist eine E-Mail unterwegs. Mit dem Link darin meldest du dich an.",
		"Kein Mitglied hat diese Adresse. Bitte auf Tippfehler prüfen.",
		"Zu viele Versuche. Versuche es später noch einmal.", "Bitte gib deinen Namen an.",
		"Das ist keine E-Mail-Adresse. Bitte auf Tippfehler prüfen.",
	},
	"en": {
		"Register", "Cancel registration", "Do you want to cancel your registration?",
		"Email address", "Name", "Sign in",
		"We have sent an email to *. Open the link in it, and you are registered.",
		"Places left: *", "See membership options", "Stay registered", "Use another address",
		"Also send me the newsletter", "Moved from: *",
		"One step left: press the button to register.",
		"This link has already been used or has expired. Ask for a new one.",
		"If * is a member’s address, an email is on its way. Open the link in it to register.",
		"No member has this address. Check it for typos.",
		"Too many attempts. Try again later.", "Enter your name.",
		"This is not an email address. Check it for typos.",
	},
	"es": {
		"Inscribirse", "Cancelar inscripción", "¿Quieres cancelar tu inscripción?",
		"Correo electrónico", "Nombre", "Iniciar sesión",
		"Hemos enviado un correo a *. Abre el enlace que contiene para inscribirte.",
		"Plazas libres: *", "Ver suscripciones", "Mantener inscripción", "Usar otra dirección",
		"Recibir también el boletín", "Antes del cambio: *",
		"Falta un paso: pulsa el botón para inscribirte.",
		"Este enlace ya se ha usado o ha caducado. Pide uno nuevo.",
		"Si * es la dirección de un miembro, el correo está en camino. Abre el enlace que contiene para inscribirte.",
		"Ningún miembro tiene esta dirección. Comprueba que esté bien escrita.",
		"Demasiados intentos. Inténtalo más tarde.", "Escribe tu nombre.",
		"Esto no es una dirección de correo. Comprueba que esté bien escrita.",
	},
	"fi": {
		"Ilmoittaudu", "Peru ilmoittautuminen", "Haluatko perua ilmoittautumisesi?",
		"Sähköpostiosoite", "Nimi", "Kirjaudu sisään",
		"Lähetimme viestin osoitteeseen *. Avaa viestissä oleva linkki, niin olet ilmoittautunut.",
		"Paikkoja jäljellä: *", "Katso jäsenyydet", "Pidä ilmoittautuminen", "Käytä toista osoitetta",
		"Haluan myös uutiskirjeen", "Siirretty, aiemmin: *",
		"Yksi vaihe jäljellä: ilmoittaudu painamalla painiketta.",
		"Linkki on jo käytetty tai vanhentunut. Pyydä uusi.",
		"Jos * on jäsenen osoite, viesti on matkalla. Ilmoittaudu avaamalla viestissä oleva linkki.",
		"Kenelläkään jäsenellä ei ole tätä osoitetta. Tarkista kirjoitusasu.",
		"Liian monta yritystä. Yritä myöhemmin uudelleen.", "Kirjoita nimesi.",
		"Tämä ei ole sähköpostiosoite. Tarkista kirjoitusasu.",
	},
	"fr": {
		"S’inscrire", "Annuler l’inscription", "Voulez-vous annuler votre inscription\u00a0?",
		"Adresse e-mail", "Nom", "Se connecter",
		"Nous avons envoyé un e-mail à *. Ouvrez le lien qu’il contient pour vous inscrire.",
		"Places restantes\u00a0: *", "Voir les abonnements", "Garder l’inscription", "Utiliser une autre adresse",
		"Recevoir aussi la newsletter", "Auparavant\u00a0: *",
		"Plus qu’une étape\u00a0: appuyez sur le bouton pour vous inscrire.",
		"Ce lien a déjà servi ou a expiré. Demandez-en un nouveau.",
		"Si * est l’adresse d’un abonné, un e-mail est en route. Ouvrez le lien qu’il contient pour vous inscrire.",
		"Aucun abonné n’a cette adresse. Vérifiez-la.",
		"Trop de tentatives. Réessayez plus tard.", "Indiquez votre nom.",
		"Ce n’est pas une adresse e-mail. Vérifiez-la.",
	},
	"he": {
		"הרשמה", "ביטול ההרשמה", "לבטל את ההרשמה שלכם?",
		"כתובת מייל", "שם", "כניסה",
		"שלחנו מייל אל *. פתחו את הקישור שבו כדי להירשם.",
		"מקומות פנויים: *", "אפשרויות מנוי", "השארת ההרשמה", "שימוש בכתובת אחרת",
		"שלחו לי גם את הניוזלטר", "לפני השינוי: *",
		"נותר צעד אחד: לחצו על הכפתור כדי להירשם.",
		"הקישור כבר נוצל או שפג תוקפו. בקשו קישור חדש.",
		"אם * היא כתובת של חבר, מייל כבר בדרך. פתחו את הקישור שבו כדי להירשם.",
		"אין חבר עם כתובת זו. בדקו את האיות.",
		"יותר מדי ניסיונות. נסו שוב מאוחר יותר.", "רשמו את השם שלכם.",
		"זו אינה כתובת מייל. בדקו את האיות.",
	},
	"it": {
		"Iscriviti", "Annulla iscrizione", "Vuoi annullare la tua iscrizione?",
		"Indirizzo email", "Nome", "Accedi",
		"Abbiamo inviato un’email a *. Apri il link per completare l’iscrizione.",
		"Posti rimasti: *", "Vedi gli abbonamenti", "Mantieni iscrizione", "Usa un altro indirizzo",
		"Ricevi anche la newsletter", "Prima della modifica: *",
		"Manca un passo: premi il pulsante per iscriverti.",
		"Questo link è già stato usato o è scaduto. Richiedine uno nuovo.",
		"Se * è l’indirizzo di un membro, l’email è in arrivo. Apri il link per iscriverti.",
		"Nessun membro ha questo indirizzo. Controlla che sia scritto bene.",
		"Troppi tentativi. Riprova più tardi.", "Scrivi il tuo nome.",
		"Questo non è un indirizzo email. Controlla che sia scritto bene.",
	},
	"ja": {
		"申し込む", "申し込みを取り消す", "申し込みを取り消しますか？",
		"メールアドレス", "お名前", "ログイン",
		"*にメールを送りました。メール内のリンクを開くと申し込みが完了します。",
		"残席：*", "会員プランを見る", "取り消さない", "別のアドレスを使う",
		"ニュースレターも受け取る", "変更前：*",
		"あと一歩です。ボタンを押すと申し込みが完了します。",
		"このリンクは使用済みか、期限切れです。新しいリンクを取得してください。",
		"*が会員のアドレスであれば、まもなくメールが届きます。メール内のリンクを開いてお申し込みください。",
		"このアドレスの会員はいません。入力を確認してください。",
		"試行回数が多すぎます。しばらくしてからお試しください。", "お名前を入力してください。",
		"メールアドレスの形式が正しくありません。入力を確認してください。",
	},
	"ko": {
		"신청하기", "신청 취소", "신청을 취소하시겠어요?",
		"이메일 주소", "이름", "로그인",
		"*(으)로 이메일을 보냈어요. 이메일의 링크를 열면 신청이 완료돼요.",
		"남은 자리: *", "멤버십 보기", "신청 유지", "다른 주소 사용",
		"뉴스레터도 받기", "변경 전: *",
		"한 단계만 남았어요. 버튼을 눌러 신청을 완료해 주세요.",
		"이미 사용했거나 만료된 링크예요. 새 링크를 요청해 주세요.",
		"*이(가) 회원의 주소라면 이메일이 곧 도착해요. 이메일의 링크를 열어 신청해 주세요.",
		"이 주소로 등록된 회원이 없어요. 오타가 없는지 확인해 주세요.",
		"시도가 너무 많아요. 나중에 다시 시도해 주세요.", "이름을 입력해 주세요.",
		"이메일 주소가 아니에요. 오타가 없는지 확인해 주세요.",
	},
	"nb": {
		"Meld deg på", "Meld deg av", "Vil du melde deg av?",
		"E-postadresse", "Navn", "Logg inn",
		"Vi har sendt en e-post til *. Åpne lenken i den, så er du påmeldt.",
		"Ledige plasser: *", "Se medlemskap", "Behold påmeldingen", "Bruk en annen adresse",
		"Send meg også nyhetsbrevet", "Flyttet fra: *",
		"Ett steg gjenstår: trykk på knappen for å melde deg på.",
		"Lenken er allerede brukt eller utløpt. Be om en ny.",
		"Hvis * er adressen til et medlem, er en e-post på vei. Åpne lenken i den for å melde deg på.",
		"Ingen medlemmer har denne adressen. Se etter skrivefeil.",
		"For mange forsøk. Prøv igjen senere.", "Skriv navnet ditt.",
		"Dette er ikke en e-postadresse. Se etter skrivefeil.",
	},
	"nl": {
		"Aanmelden", "Afmelden", "Afmelden voor dit evenement?",
		"E-mailadres", "Naam", "Inloggen",
		"We hebben een e-mail gestuurd naar *. Open de link erin om je aan te melden.",
		"Vrije plaatsen: *", "Bekijk lidmaatschappen", "Aangemeld blijven", "Ander adres gebruiken",
		"Stuur mij ook de nieuwsbrief", "Verplaatst, eerder: *",
		"Nog één stap: druk op de knop om je aan te melden.",
		"Deze link is al gebruikt of verlopen. Vraag een nieuwe aan.",
		"Als * het adres van een lid is, is er een e-mail onderweg. Open de link erin om je aan te melden.",
		"Er is geen lid met dit adres. Controleer op typefouten.",
		"Te veel pogingen. Probeer het later opnieuw.", "Vul je naam in.",
		"Dit is geen e-mailadres. Controleer op typefouten.",
	},
	"pl": {
		"Zapisz się", "Wypisz się", "Czy chcesz wypisać się z tego wydarzenia?",
		"Adres e-mail", "Imię i nazwisko", "Zaloguj się",
		"Wysłaliśmy wiadomość na adres *. Otwórz zawarty w niej link, aby się zapisać.",
		"Wolne miejsca: *", "Zobacz plany", "Nie wypisuj się", "Użyj innego adresu",
		"Chcę też otrzymywać newsletter", "Przed zmianą: *",
		"Został jeden krok: naciśnij przycisk, aby się zapisać.",
		"Ten link został już użyty lub wygasł. Poproś o nowy.",
		"Jeśli * to adres członka, wiadomość jest w drodze. Otwórz zawarty w niej link, aby się zapisać.",
		"Nie ma członka o tym adresie. Sprawdź pisownię.",
		"Zbyt wiele prób. Spróbuj później.", "Podaj swoje imię i nazwisko.",
		"To nie jest adres e-mail. Sprawdź pisownię.",
	},
	"pt": {
		"Inscrever-se", "Cancelar inscrição", "Quer cancelar a sua inscrição?",
		"Endereço de e-mail", "Nome", "Entrar",
		"Enviámos um e-mail para *. Abra o link para concluir a inscrição.",
		"Vagas livres: *", "Ver assinaturas", "Manter inscrição", "Usar outro endereço",
		"Receber também a newsletter", "Antes da alteração: *",
		"Falta um passo: clique no botão para se inscrever.",
		"Este link já foi usado ou expirou. Peça um novo.",
		"Se * for o endereço de um membro, o e-mail está a caminho. Abra o link para se inscrever.",
		"Nenhum membro tem este endereço. Verifique se está bem escrito.",
		"Demasiadas tentativas. Tente mais tarde.", "Escreva o seu nome.",
		"Isto não é um endereço de e-mail. Verifique se está bem escrito.",
	},
	"ru": {
		"Зарегистрироваться", "Отменить регистрацию", "Хотите отменить регистрацию?",
		"Электронная почта", "Имя", "Войти",
		"Мы отправили письмо на *. Откройте ссылку в нём, чтобы зарегистрироваться.",
		"Осталось мест: *", "Варианты подписки", "Сохранить регистрацию", "Указать другой адрес",
		"Получать также рассылку", "До изменения: *",
		"Остался один шаг: нажмите кнопку, чтобы зарегистрироваться.",
		"Эта ссылка уже использована или устарела. Запросите новую.",
		"Если * — адрес подписчика, письмо уже в пути. Откройте ссылку в нём, чтобы зарегистрироваться.",
		"Подписчика с таким адресом нет. Проверьте, нет ли опечаток.",
		"Слишком много попыток. Попробуйте позже.", "Укажите своё имя.",
		"Это не адрес электронной почты. Проверьте, нет ли опечаток.",
	},
	"sv": {
		"Anmäl dig", "Avboka", "Vill du avboka din anmälan?",
		"E-postadress", "Namn", "Logga in",
		"Vi har skickat ett mejl till *. Öppna länken i det så är du anmäld.",
		"Platser kvar: *", "Se medlemskap", "Behåll anmälan", "Använd en annan adress",
		"Skicka mig även nyhetsbrevet", "Flyttat från: *",
		"Ett steg återstår: tryck på knappen för att anmäla dig.",
		"Länken är redan använd eller har gått ut. Be om en ny.",
		"Om * är en medlems adress är ett mejl på väg. Öppna länken i det för att anmäla dig.",
		"Ingen medlem har den här adressen. Kontrollera stavningen.",
		"För många försök. Försök igen senare.", "Skriv ditt namn.",
		"Det här är inte en e-postadress. Kontrollera stavningen.",
	},
	"tr": {
		"Kaydol", "Kaydı iptal et", "Kaydınızı iptal etmek istiyor musunuz?",
		"E-posta adresi", "Ad", "Giriş yap",
		"* adresine bir e-posta gönderdik. İçindeki bağlantıyı açınca kaydınız tamamlanır.",
		"Kalan yer: *", "Üyelik seçenekleri", "Kaydı koru", "Başka bir adres kullan",
		"Bülteni de almak istiyorum", "Değişiklikten önce: *",
		"Bir adım kaldı: kaydolmak için düğmeye basın.",
		"Bu bağlantı daha önce kullanılmış ya da süresi dolmuş. Yenisini isteyin.",
		"* bir üyenin adresiyse e-posta yolda. Kaydolmak için içindeki bağlantıyı açın.",
		"Bu adrese sahip üye yok. Yazımını kontrol edin.",
		"Çok fazla deneme. Daha sonra tekrar deneyin.", "Adınızı girin.",
		"Bu bir e-posta adresi değil. Yazımını kontrol edin.",
	},
	"uk": {
		"Зареєструватися", "Скасувати реєстрацію", "Хочете скасувати реєстрацію?",
		"Електронна пошта", "Ім’я", "Увійти",
		"Ми надіслали лист на *. Відкрийте посилання в ньому, щоб зареєструватися.",
		"Залишилося місць: *", "Варіанти підписки", "Зберегти реєстрацію", "Використати іншу адресу",
		"Отримувати також розсилку", "До зміни: *",
		"Залишився один крок: натисніть кнопку, щоб зареєструватися.",
		"Це посилання вже використано або воно застаріло. Попросіть нове.",
		"Якщо * — адреса підписника, лист уже в дорозі. Відкрийте посилання в ньому, щоб зареєструватися.",
		"Підписника з такою адресою немає. Перевірте написання.",
		"Забагато спроб. Спробуйте пізніше.", "Вкажіть своє ім’я.",
		"Це не адреса електронної пошти. Перевірте написання.",
	},
	"zh": {
		"报名", "取消报名", "您要取消报名吗？",
		"电子邮箱", "姓名", "登录",
		"我们已向 * 发送邮件。打开其中的链接即可完成报名。",
		"剩余名额：*", "查看订阅方案", "保留报名", "使用其他地址",
		"同时订阅新闻信", "变更前：*",
		"还差一步：请点击按钮完成报名。",
		"此链接已被使用或已过期，请重新获取。",
		"如果 * 是会员邮箱，您将很快收到邮件。打开其中的链接即可报名。",
		"没有使用此邮箱的会员，请检查拼写。",
		"尝试次数过多，请稍后再试。", "请填写姓名。",
		"这不是有效的电子邮箱，请检查拼写。",
	},
}

// OfLink is the message for a reader who came by the link of a mail, in English if there is none in the language. It is ""
// in states in which the link does not matter.
func OfLink(language string, state State) string {
	switch labels := LabelsOf(language); state {
	case CanRegister:
		return labels.confirm
	case LoginRequiredFree, LoginRequiredPaid:
		return labels.stale
	case UpgradeRequired, Registered, RegistrationClosed, EventPassed:
	}
	return ""
}

// LabelsOf has the labels in a language, or in English if there are none in it.
func LabelsOf(language string) Labels { return wordsIn(labelsOf, language) }
