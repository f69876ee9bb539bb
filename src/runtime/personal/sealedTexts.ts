/**
 * Personal texts that events and documents hold encrypted ("sealed"), and that are decrypted only where they are shown.
 * A text whose subject was erased is empty (docs/design.md#personal-data).
 */
import { NO_TEXT, type SealedText, sealUnder } from '../../lib/seal.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { unaltered } from './alteredData.js';
import type { Subjects } from './subjects.js';

type Keys = Pick<Subjects, 'secrets'>;

/**
 * A sealed text: the subject's id, a dot, and the text encrypted under its data key. An empty text stays empty.
 * @throws UnavailableError, also where the subject was erased a moment ago
 */
export async function sealText(keys: Keys, subject: string, text: string): Promise<SealedText> {
  if (text === '') return NO_TEXT;
  const key = (await keys.secrets([subject])).get(subject);
  if (key === undefined) throw new UnavailableError('the subject of a text is being erased');
  return `${subject}.${sealUnder(key).seal(Buffer.from(text), subject)}` as SealedText;
}

/** The text in the clear; empty where its subject was erased. @throws UnavailableError; AlteredDataError */
export async function openText(keys: Keys, sealed: SealedText): Promise<string> {
  const [subject = '', box = ''] = sealed.split('.');
  const key = sealed === '' ? undefined : (await keys.secrets([subject])).get(subject);
  if (key === undefined) return '';
  return unaltered(
    () => 'a message',
    () => sealUnder(key).open(box, subject).toString(),
  );
}
