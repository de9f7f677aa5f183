package messaging

// Labels are the words of the page's buttons and fields in a language, which no editor writes.
type Labels struct {
	Register string `json:"register"`
	Cancel   string `json:"cancel"`
	Email    string `json:"email"`
	Name     string `json:"name"`
	SignIn   string `json:"sign_in"`
	Sent     string `json:"sent"`   // to the address that stands for *
	Places   string `json:"places"` // that are left, which stand for *
	Plans    string `json:"plans"`
	Keep     string `json:"keep"`    // the registration, instead of Cancel
	Another  string `json:"another"` // address than the one in Sent

	SentToMember string `json:"-"` // in place of Sent, where only members get a mail
	UnknownEmail string `json:"-"`
	TooMany      string `json:"-"`
	NoName       string `json:"-"`
}

// labelsOf are those of each language of the inbox button.
var labelsOf = map[string]Labels{
	"ar": {
		"التسجيل", "إلغاء التسجيل", "البريد الإلكتروني", "الاسم", "تسجيل الدخول",
		"أرسلنا رسالة إلى *. افتح الرابط الذي فيها لتسجيل مشاركتك.",
		"الأماكن المتبقية: *", "خيارات العضوية", "الإبقاء على التسجيل", "استخدام عنوان آخر",
		"إذا كان * عنوان عضو، فستصله رسالة الآن. افتح الرابط الذي فيها لتسجيل مشاركتك.",
		"لا يوجد عضو بهذا العنوان. تحقق من كتابته.",
		"محاولات كثيرة. حاول مرة أخرى لاحقًا.", "يُرجى كتابة اسمك.",
	},
	"cs": {
		"Přihlásit se na akci", "Zrušit registraci", "E-mailová adresa", "Jméno", "Přihlásit se",
		"Na adresu * jsme poslali e-mail. Otevřením odkazu v něm se zaregistrujete.",
		"Volná místa: *", "Možnosti členství", "Ponechat registraci", "Použít jinou adresu",
		"Pokud adresa * patří členovi, e-mail je na cestě. Otevřením odkazu v něm se zaregistrujete.",
		"Tuto adresu nemá žádný člen. Zkontrolujte překlepy.",
		"Příliš mnoho pokusů. Zkuste to později.", "Napište prosím své jméno.",
	},
	"da": {
		"Tilmeld", "Afmeld", "E-mailadresse", "Navn", "Log ind",
		"Vi har sendt en e-mail til *. Åbn linket i den, så er du tilmeldt.",
		"Ledige pladser: *", "Se medlemskaber", "Behold tilmelding", "Brug en anden adresse",
		"Hvis * er et medlems adresse, er en e-mail på vej. Åbn linket i den for at tilmelde dig.",
		"Intet medlem har denne adresse. Tjek for tastefejl.",
		"For mange forsøg. Prøv igen senere.", "Skriv dit navn.",
	},
	"de": {
		"Anmelden", "Anmeldung stornieren", "E-Mail-Adresse", "Name", "Einloggen",
		"Wir haben eine E-Mail an * geschickt. Mit dem Link darin sind Sie angemeldet.",
		"Freie Plätze: *", "Mitgliedschaften ansehen", "Angemeldet bleiben", "Andere Adresse verwenden",
		"Wenn * einem Mitglied gehört, ist eine E-Mail unterwegs. Mit dem Link darin melden Sie sich an.",
		"Kein Mitglied hat diese Adresse. Bitte auf Tippfehler prüfen.",
		"Zu viele Versuche. Bitte später noch einmal.", "Bitte geben Sie Ihren Namen an.",
	},
	"en": {
		"Register", "Cancel registration", "Email address", "Name", "Sign in",
		"We have sent an email to *. Open its link, and you are registered.",
		"Places left: *", "See membership options", "Stay registered", "Use another address",
		"If * is a member’s address, an email is on its way. Open its link to register.",
		"No member has this address. Check it for typos.",
		"Too many attempts. Try again later.", "Write your name.",
	},
	"es": {
		"Inscribirse", "Cancelar inscripción", "Correo electrónico", "Nombre", "Iniciar sesión",
		"Hemos enviado un correo a *. Abre su enlace para inscribirte.",
		"Plazas libres: *", "Ver suscripciones", "Mantener inscripción", "Usar otra dirección",
		"Si * es la dirección de un miembro, el correo está en camino. Abre su enlace para inscribirte.",
		"Ningún miembro tiene esta dirección. Comprueba que esté bien escrita.",
		"Demasiados intentos. Inténtalo más tarde.", "Escribe tu nombre.",
	},
	"fi": {
		"Ilmoittaudu", "Peru ilmoittautuminen", "Sähköpostiosoite", "Nimi", "Kirjaudu sisään",
		"Lähetimme viestin osoitteeseen *. Avaa sen linkki, niin olet ilmoittautunut.",
		"Paikkoja jäljellä: *", "Katso jäsenyydet", "Pidä ilmoittautuminen", "Käytä toista osoitetta",
		"Jos * on jäsenen osoite, viesti on matkalla. Ilmoittaudu avaamalla sen linkki.",
		"Kenelläkään jäsenellä ei ole tätä osoitetta. Tarkista kirjoitusvirheet.",
		"Liian monta yritystä. Yritä myöhemmin uudelleen.", "Kirjoita nimesi.",
	},
	"fr": {
		"S’inscrire", "Annuler l’inscription", "Adresse e-mail", "Nom", "Se connecter",
		"Nous avons envoyé un e-mail à *. Ouvrez son lien pour être inscrit.",
		"Places restantes : *", "Voir les abonnements", "Garder l’inscription", "Utiliser une autre adresse",
		"Si * est l’adresse d’un membre, un e-mail est en route. Ouvrez son lien pour vous inscrire.",
		"Aucun membre n’a cette adresse. Vérifiez-la.",
		"Trop de tentatives. Réessayez plus tard.", "Indiquez votre nom.",
	},
	"he": {
		"הרשמה", "ביטול ההרשמה", "כתובת דוא״ל", "שם", "כניסה",
		"שלחנו הודעה אל *. פתיחת הקישור שבה משלימה את ההרשמה.",
		"מקומות פנויים: *", "אפשרויות מנוי", "השארת ההרשמה", "שימוש בכתובת אחרת",
		"אם * היא כתובת של חבר, הודעה כבר בדרך. פתיחת הקישור שבה מובילה להרשמה.",
		"אין חבר עם כתובת זו. כדאי לבדוק את האיות.",
		"יותר מדי ניסיונות. נסו שוב מאוחר יותר.", "נא לכתוב את שמך.",
	},
	"it": {
		"Iscriviti", "Annulla iscrizione", "Indirizzo email", "Nome", "Accedi",
		"Abbiamo inviato un’email a *. Apri il link per completare l’iscrizione.",
		"Posti rimasti: *", "Vedi gli abbonamenti", "Mantieni iscrizione", "Usa un altro indirizzo",
		"Se * è l’indirizzo di un membro, l’email è in arrivo. Apri il link per iscriverti.",
		"Nessun membro ha questo indirizzo. Controlla che sia scritto bene.",
		"Troppi tentativi. Riprova più tardi.", "Scrivi il tuo nome.",
	},
	"ja": {
		"申し込む", "申し込みを取り消す", "メールアドレス", "お名前", "サインイン",
		"*にメールを送りました。メール内のリンクを開くと申し込みが完了します。",
		"残席: *", "会員プランを見る", "取り消さない", "別のアドレスを使う",
		"*が会員のアドレスであれば、メールをお送りしました。メール内のリンクを開いてお申し込みください。",
		"このアドレスの会員はいません。入力を確認してください。",
		"試行回数が多すぎます。しばらくしてからお試しください。", "お名前を入力してください。",
	},
	"ko": {
		"신청하기", "신청 취소", "이메일 주소", "이름", "로그인",
		"*(으)로 이메일을 보냈습니다. 메일의 링크를 열면 신청이 완료됩니다.",
		"남은 자리: *", "멤버십 보기", "신청 유지", "다른 주소 사용",
		"*이(가) 회원의 주소라면 이메일이 곧 도착합니다. 메일의 링크를 열어 신청하세요.",
		"이 주소의 회원이 없습니다. 오타를 확인하세요.",
		"시도가 너무 많습니다. 나중에 다시 시도하세요.", "이름을 입력하세요.",
	},
	"nb": {
		"Meld deg på", "Meld deg av", "E-postadresse", "Navn", "Logg inn",
		"Vi har sendt en e-post til *. Åpne lenken i den, så er du påmeldt.",
		"Ledige plasser: *", "Se medlemskap", "Behold påmeldingen", "Bruk en annen adresse",
		"Hvis * er adressen til et medlem, er en e-post på vei. Åpne lenken i den for å melde deg på.",
		"Ingen medlemmer har denne adressen. Se etter skrivefeil.",
		"For mange forsøk. Prøv igjen senere.", "Skriv navnet ditt.",
	},
	"nl": {
		"Aanmelden", "Afmelden", "E-mailadres", "Naam", "Inloggen",
		"We hebben een e-mail gestuurd naar *. Open de link erin om u aan te melden.",
		"Vrije plaatsen: *", "Bekijk lidmaatschappen", "Aangemeld blijven", "Ander adres gebruiken",
		"Als * het adres van een lid is, is er een e-mail onderweg. Open de link erin om u aan te melden.",
		"Geen lid heeft dit adres. Controleer op typefouten.",
		"Te veel pogingen. Probeer het later opnieuw.", "Vul je naam in.",
	},
	"pl": {
		"Zapisz się", "Wypisz się", "Adres e-mail", "Imię i nazwisko", "Zaloguj się",
		"Wysłaliśmy wiadomość na adres *. Otwórz zawarty w niej link, aby się zapisać.",
		"Wolne miejsca: *", "Zobacz członkostwa", "Nie wypisuj się", "Użyj innego adresu",
		"Jeśli * to adres członka, wiadomość jest w drodze. Otwórz zawarty w niej link, aby się zapisać.",
		"Nikt z członków nie ma tego adresu. Sprawdź pisownię.",
		"Zbyt wiele prób. Spróbuj później.", "Podaj swoje imię i nazwisko.",
	},
	"pt": {
		"Inscrever-se", "Cancelar inscrição", "Endereço de e-mail", "Nome", "Entrar",
		"Enviámos um e-mail para *. Abra o link para concluir a inscrição.",
		"Lugares livres: *", "Ver assinaturas", "Manter inscrição", "Usar outro endereço",
		"Se * for o endereço de um membro, o e-mail está a caminho. Abra o link para se inscrever.",
		"Nenhum membro tem este endereço. Verifique a escrita.",
		"Demasiadas tentativas. Tente mais tarde.", "Escreva o seu nome.",
	},
	"ru": {
		"Зарегистрироваться", "Отменить регистрацию", "Электронная почта", "Имя", "Войти",
		"Мы отправили письмо на *. Откройте ссылку в нём, чтобы зарегистрироваться.",
		"Осталось мест: *", "Варианты подписки", "Сохранить регистрацию", "Указать другой адрес",
		"Если * — адрес участника, письмо уже в пути. Откройте ссылку в нём, чтобы зарегистрироваться.",
		"Участника с таким адресом нет. Проверьте, нет ли опечаток.",
		"Слишком много попыток. Попробуйте позже.", "Укажите своё имя.",
	},
	"sv": {
		"Anmäl dig", "Avboka", "E-postadress", "Namn", "Logga in",
		"Vi har skickat ett mejl till *. Öppna länken i det så är du anmäld.",
		"Platser kvar: *", "Se medlemskap", "Behåll anmälan", "Använd en annan adress",
		"Om * är en medlems adress är ett mejl på väg. Öppna länken i det för att anmäla dig.",
		"Ingen medlem har den här adressen. Kontrollera stavningen.",
		"För många försök. Försök igen senare.", "Skriv ditt namn.",
	},
	"tr": {
		"Kaydol", "Kaydı iptal et", "E-posta adresi", "Ad", "Giriş yap",
		"* adresine bir e-posta gönderdik. İçindeki bağlantıyı açınca kaydınız tamamlanır.",
		"Kalan yer: *", "Üyelik seçenekleri", "Kaydı koru", "Başka bir adres kullan",
		"* bir üyenin adresiyse e-posta yolda. Kaydolmak için içindeki bağlantıyı açın.",
		"Bu adrese sahip üye yok. Yazımını kontrol edin.",
		"Çok fazla deneme. Daha sonra tekrar deneyin.", "Adınızı yazın.",
	},
	"uk": {
		"Зареєструватися", "Скасувати реєстрацію", "Електронна пошта", "Ім’я", "Увійти",
		"Ми надіслали лист на *. Відкрийте посилання в ньому, щоб зареєструватися.",
		"Залишилося місць: *", "Варіанти підписки", "Зберегти реєстрацію", "Використати іншу адресу",
		"Якщо * — адреса учасника, лист уже в дорозі. Відкрийте посилання в ньому, щоб зареєструватися.",
		"Учасника з такою адресою немає. Перевірте написання.",
		"Забагато спроб. Спробуйте пізніше.", "Вкажіть своє ім’я.",
	},
	"zh": {
		"报名", "取消报名", "电子邮箱", "姓名", "登录",
		"我们已向 * 发送邮件。打开其中的链接即可完成报名。",
		"剩余名额：*", "查看会员方案", "保留报名", "使用其他地址",
		"如果 * 是会员邮箱，邮件已在途中。打开其中的链接即可报名。",
		"没有使用此邮箱的会员，请检查拼写。",
		"尝试次数过多，请稍后再试。", "请填写姓名。",
	},
}

// LabelsOf takes a language that [Language] has named. It reads no, the older code of Norwegian, as nb.
func LabelsOf(language string) Labels {
	if language == "no" {
		language = "nb"
	}
	return labelsOf[language]
}
