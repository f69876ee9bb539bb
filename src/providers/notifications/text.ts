import type { SendRequest } from '../../messages/notifications.js';

export type TextParts = Pick<
  SendRequest,
  'sender_name' | 'product_name' | 'message' | 'launch_url' | 'locale' | 'expires_on'
>;

/** Twilio's maximum length of an SMS, in UTF-16 code units. */
export const SMS_LENGTH = 1_600;
/** A push has at most 4,096 bytes: at three bytes a character this leaves room for the rest. */
const PUSH_MESSAGE_LENGTH = 800;
const NAME_LENGTH = 100;

/** The text of an SMS. The buyer's message is cut where it is too long. */
export function textOf(parts: TextParts): string {
  const first = firstLine(parts);
  const room = SMS_LENGTH - first.length - parts.launch_url.length - 2;
  return joined(first, cut(parts.message.trim(), room), parts.launch_url);
}

export function pushTextOf(parts: TextParts): { readonly title: string; readonly body: string } {
  return { title: firstLine(parts), body: joined(cut(parts.message.trim(), PUSH_MESSAGE_LENGTH), parts.launch_url) };
}

function firstLine({ sender_name, product_name, locale, expires_on }: TextParts): string {
  const words = wordsOf(locale);
  if (expires_on !== undefined) return words.reminder(named(product_name), dayIn(words.language, expires_on));
  const sender = named(sender_name);
  return sender === '' ? words.anonymous(named(product_name)) : words.named(sender, named(product_name));
}

function dayIn(language: string, day: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' }).format(Date.parse(day));
}

/** Keeps a name on one line. */
function named(name: string): string {
  return cut(name.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim(), NAME_LENGTH);
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n');
}

/** At most `length` code units. Providers refuse half a character at the end. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  return `${text.slice(0, Math.max(0, length - 1)).replace(/[\uD800-\uDBFF]$/u, '')}…`;
}

/** Texts of notifications. Names are inserted unchanged, so no text depends on their gender or grammatical case. */

interface Words {
  /** Language tag for dates; dates of `en` are British. */
  readonly language: string;
  readonly named: (sender: string, product: string) => string;
  readonly anonymous: (product: string) => string;
  readonly reminder: (product: string, day: string) => string;
}

const en: Words = {
  language: 'en-GB',
  named: (sender, product) => `${sender} has sent you a gift: ${product}.`,
  anonymous: (product) => `You have been sent a gift: ${product}.`,
  reminder: (product, day) => `Use your gift by ${day}: ${product}.`,
};

const cy: Words = {
  language: 'cy',
  named: (sender, product) => `Mae ${sender} wedi anfon anrheg atoch: ${product}.`,
  anonymous: (product) => `Mae rhywun wedi anfon anrheg atoch: ${product}.`,
  reminder: (product, day) => `Defnyddiwch eich anrheg erbyn ${day}: ${product}.`,
};

const de: Words = {
  language: 'de',
  named: (sender, product) => `${sender} hat Ihnen ein Geschenk geschickt: ${product}.`,
  anonymous: (product) => `Sie haben ein Geschenk bekommen: ${product}.`,
  reminder: (product, day) => `Ihr Geschenk gilt bis ${day}: ${product}.`,
};

const fr: Words = {
  language: 'fr',
  named: (sender, product) => `${sender} vous a envoyé un cadeau : ${product}.`,
  anonymous: (product) => `Vous avez reçu un cadeau : ${product}.`,
  reminder: (product, day) => `Votre cadeau est valable jusqu’au ${day} : ${product}.`,
};

const es: Words = {
  language: 'es',
  named: (sender, product) => `${sender} le ha enviado un regalo: ${product}.`,
  anonymous: (product) => `Ha recibido un regalo: ${product}.`,
  reminder: (product, day) => `Su regalo es válido hasta el ${day}: ${product}.`,
};

const it: Words = {
  language: 'it',
  named: (sender, product) => `${sender} ti ha inviato un regalo: ${product}.`,
  anonymous: (product) => `Hai ricevuto un regalo: ${product}.`,
  reminder: (product, day) => `Il tuo regalo è valido fino al ${day}: ${product}.`,
};

const nl: Words = {
  language: 'nl',
  named: (sender, product) => `${sender} heeft je een cadeau gestuurd: ${product}.`,
  anonymous: (product) => `Je hebt een cadeau gekregen: ${product}.`,
  reminder: (product, day) => `Je cadeau is geldig tot en met ${day}: ${product}.`,
};

const pl: Words = {
  language: 'pl',
  named: (sender, product) => `Masz prezent od: ${sender}. ${product}.`,
  anonymous: (product) => `Masz prezent: ${product}.`,
  reminder: (product, day) => `Twój prezent jest ważny do: ${day}. ${product}.`,
};

const pt: Words = {
  language: 'pt',
  named: (sender, product) => `${sender} enviou-lhe um presente: ${product}.`,
  anonymous: (product) => `Recebeu um presente: ${product}.`,
  reminder: (product, day) => `O seu presente é válido até ${day}: ${product}.`,
};

const WORDS: ReadonlyMap<string, Words> = new Map(Object.entries({ en, cy, de, es, fr, it, nl, pl, pt }));

/** `locale`: `cy`, `cy-GB` or `cy_GB`. */
export function wordsOf(locale: string | null): Words {
  return WORDS.get(locale?.toLowerCase().split(/[-_]/)[0] ?? 'en') ?? en;
}
