/** Lines of a gift and its new receiver, as they are typed or pasted from a table. */
import { Failed } from './call.js';
import type { Item } from './many.js';

/** A number begins with a plus sign or a zero; everything else is taken for a user’s id. */
export const NUMBER = /^[+0][\d ()-]*$/;
const SEPARATED = /^([^\s,;]+)[\s,;]*(.*)$/;

/** @throws Failed which names the first line that is not a gift with its receiver, or names a gift again */
export function readReceivers(text: string): readonly Item[] {
  const lines = text.split('\n').map((line, index) => ({ line: line.trim(), number: index + 1 }));
  const known = new Set<string>();
  return lines
    .filter(({ line }) => line !== '')
    .map(({ line, number }) => {
      const [, id = '', receiver = ''] = SEPARATED.exec(line) ?? [];
      if (receiver === '') throw new Failed(`Line ${number} has no receiver: “${line}”.`);
      if (known.has(id)) throw new Failed(`Line ${number} names gift ${id} again.`);
      known.add(id);
      return { id, ...(NUMBER.test(receiver) ? { phone_number: receiver } : { user_id: receiver }) };
    });
}
