/** Names are filled in as they are, so no word depends on their gender or case. */

export interface Words {
  readonly named: (sender: string, product: string) => string;
  readonly anonymous: (product: string) => string;
}

const en: Words = {
  named: (sender, product) => `${sender} has sent you a gift: ${product}.`,
  anonymous: (product) => `You have been sent a gift: ${product}.`,
};

const cy: Words = {
  named: (sender, product) => `Mae ${sender} wedi anfon anrheg atoch: ${product}.`,
  anonymous: (product) => `Mae rhywun wedi anfon anrheg atoch: ${product}.`,
};

const de: Words = {
  named: (sender, product) => `${sender} hat Ihnen ein Geschenk geschickt: ${product}.`,
  anonymous: (product) => `Sie haben ein Geschenk bekommen: ${product}.`,
};

const fr: Words = {
  named: (sender, product) => `${sender} vous a envoyé un cadeau : ${product}.`,
  anonymous: (product) => `Vous avez reçu un cadeau : ${product}.`,
};

const es: Words = {
  named: (sender, product) => `${sender} le ha enviado un regalo: ${product}.`,
  anonymous: (product) => `Ha recibido un regalo: ${product}.`,
};

const it: Words = {
  named: (sender, product) => `${sender} ti ha inviato un regalo: ${product}.`,
  anonymous: (product) => `Hai ricevuto un regalo: ${product}.`,
};

const nl: Words = {
  named: (sender, product) => `${sender} heeft je een cadeau gestuurd: ${product}.`,
  anonymous: (product) => `Je hebt een cadeau gekregen: ${product}.`,
};

const pl: Words = {
  named: (sender, product) => `Masz prezent od: ${sender}. ${product}.`,
  anonymous: (product) => `Masz prezent: ${product}.`,
};

const pt: Words = {
  named: (sender, product) => `${sender} enviou-lhe um presente: ${product}.`,
  anonymous: (product) => `Recebeu um presente: ${product}.`,
};

const WORDS: ReadonlyMap<string, Words> = new Map(Object.entries({ en, cy, de, es, fr, it, nl, pl, pt }));

/** `locale`: `cy`, `cy-GB` or `cy_GB`. */
export function wordsOf(locale: string | null): Words {
  return WORDS.get(locale?.toLowerCase().split(/[-_]/)[0] ?? 'en') ?? en;
}
