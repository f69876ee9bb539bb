/**
 * Signing secrets of webhook endpoints. One is the data key of a subject in the key store: no event, document or backup
 * of the log holds it (docs/decisions.md#webhook-endpoints).
 */
import { type SigningSecret, signingSecretIds } from '../domain/webhookEndpoint.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { Subjects } from '../runtime/personal/subjects.js';
import { idFrom } from './commandIds.js';

/** The id of the secret that a command makes: the same for every repetition. @throws UnavailableError */
export async function secretOfCommand(
  subjects: Pick<Subjects, 'ids'>,
  endpointId: string,
  commandId: string,
): Promise<string> {
  const text = `${endpointId}/${idFrom(commandId, 'webhookSecret', 128)}`;
  const [id] = await subjects.ids([{ kind: 'webhookSecret', text }]);
  return id as string;
}

/**
 * Those that sign at a time (ISO 8601, UTC): `whsec_` and base64, the newest first.
 * @throws UnavailableError, also where the key store has lost one that signs
 */
export async function signingSecrets(
  subjects: Pick<Subjects, 'secrets'>,
  secrets: readonly SigningSecret[],
  at: string,
): Promise<readonly string[]> {
  return secretTexts(subjects, signingSecretIds(secrets, at));
}

/** As `signingSecrets`, by ids. */
export async function secretTexts(subjects: Pick<Subjects, 'secrets'>, ids: readonly string[]): Promise<string[]> {
  const found = await subjects.secrets(ids);
  return ids.map((id) => {
    const secret = found.get(id);
    if (secret === undefined) throw new UnavailableError('the secret of a webhook endpoint is not in the key store');
    return `whsec_${secret.toString('base64')}`;
  });
}
