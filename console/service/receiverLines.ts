/** Lines of a gift and its new receiver, as they are typed or pasted from a table. */
import { INVISIBLE, trimmed } from '../../src/lib/invisible.js';
import { Failed } from './call.js';
import type { Item } from './many.js';

/** A number begins with a plus sign or a zero; everything else is taken for a user’s id. */
export const NUMBER = /^[+0][\d ()-]*$/;
const UNSEEN = new RegExp(`[${INVISIBLE}]`, 'gu');

/**
 * What was typed or pasted, without blanks around it. A number is left without what contact books and web pages put
 * into it: invisible characters, blanks and dashes that do not break.
 */
export function plainly(text: string): string {
  const plain = text
    .replace(UNSEEN, '')
    .replace(/\s/gu, ' ')
    .replace(/\p{Pd}/gu, '-')
    .trim();
  return /^\+?[\d ()-]+$/.test(plain) ? plain : trimmed(text);
}

const SEPARATED = /^([^\s,;]+)[\s,;]*(.*)$/;

/** @throws Failed which names the first line that is not a gift with its receiver, or names a gift again */
export function readReceivers(text: string): readonly Item[] {
  const lines = text.split('\n').map((line, index) => ({ line: trimmed(line), number: index + 1 }));
  const known = new Set<string>();
  return lines
    .filter(({ line }) => line !== '')
    .map(({ line, number }) => {
      const [, id = '', rest = ''] = SEPARATED.exec(line) ?? [];
      const receiver = plainly(rest);
      if (receiver === '') throw new Failed(`Line ${number} has no receiver: “${line}”.`);
      if (known.has(id)) throw new Failed(`Line ${number} names gift ${id} again.`);
      known.add(id);
      return { id, ...(NUMBER.test(receiver) ? { phone_number: receiver } : { user_id: receiver }) };
    });
}
