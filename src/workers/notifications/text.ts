/** The words a receiver gets. Pure. */
import type { SendRequest } from '../messages.js';

/** What each language says: who sent what, without and with the sender's name. */
const WORDS: Readonly<Record<string, { readonly somebody: (product: string) => string; readonly named: (sender: string, product: string) => string }>> = {
  en: {
    somebody: (product) => `You have been sent a gift: ${product}.`,
    named: (sender, product) => `${sender} has sent you a gift: ${product}.`,
  },
  cy: {
    somebody: (product) => `Mae rhywun wedi anfon anrheg atoch: ${product}.`,
    named: (sender, product) => `Mae ${sender} wedi anfon anrheg atoch: ${product}.`,
  },
};

/** The whole text in the receiver's language (`cy-GB` is `cy`), in English where we have no words for it. */
export function textOf({ sender_name, product_name, message, launch_url, locale }: Pick<SendRequest, 'sender_name' | 'product_name' | 'message' | 'launch_url' | 'locale'>): string {
  const language = locale?.toLowerCase().split(/[-_]/)[0] ?? 'en';
  const words = Object.hasOwn(WORDS, language) ? WORDS[language] : WORDS['en'];
  const first = sender_name === '' ? words?.somebody(product_name) : words?.named(sender_name, product_name);
  return [first, message, launch_url].filter((part) => part !== '').join('\n');
}
