import type { SendRequest } from '../../messages/notifications.js';
import { wordsOf } from './words.js';

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
