/**
 * Personal texts that events and documents hold sealed: who shows one opens it. A text whose subject was erased is empty
 * (docs/design.md#personal-data).
 */
import { NO_TEXT, type SealedText, sealUnder } from '../../lib/seal.js';
import type { Subjects } from './subjects.js';

type Keys = Pick<Subjects, 'secrets'>;

/**
 * Seals a text for the subject of this id: the id, a dot, and the text under its data key. An empty one, and one whose subject was erased meanwhile, is empty.
 */
export async function sealText(keys: Keys, subject: string, text: string): Promise<SealedText> {
  const key = text === '' ? undefined : (await keys.secrets([subject])).get(subject);
  return key === undefined ? NO_TEXT : (`${subject}.${sealUnder(key).seal(Buffer.from(text), subject)}` as SealedText);
}

/** @throws UnavailableError; Error where the text was altered */
export async function openText(keys: Keys, sealed: SealedText): Promise<string> {
  const [subject = '', box = ''] = sealed.split('.');
  const key = sealed === '' ? undefined : (await keys.secrets([subject])).get(subject);
  return key === undefined ? '' : sealUnder(key).open(box, subject).toString();
}
