/**
 * Signing secrets of webhook endpoints. Each is the data key of a subject in the key store: no event, document or
 * backup of the log holds it (docs/decisions/webhook-secrets.md).
 */
import { type SigningSecret, signingSecretIds } from '../domain/webhookEndpoint.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { Subjects } from '../runtime/personal/index.js';
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
 * Secrets that sign at the time `at` (ISO 8601, UTC), as `whsec_` and base64, the newest first. Earlier secrets that
 * the key store has lost are left out.
 * @throws UnavailableError, also where it has lost the newest
 */
export async function signingSecrets(
  subjects: Pick<Subjects, 'secrets'>,
  secrets: readonly SigningSecret[],
  at: string,
): Promise<readonly string[]> {
  const ids = signingSecretIds(secrets, at);
  const found = await subjects.secrets(ids);
  const [newest] = ids;
  if (newest === undefined || !found.has(newest)) throw lost();
  return ids.flatMap((id) => secretText(found.get(id)) ?? []);
}

/** @throws UnavailableError, also where the key store has lost the secret */
export async function shownSecret(subjects: Pick<Subjects, 'secrets'>, id: string): Promise<string> {
  const text = secretText((await subjects.secrets([id])).get(id));
  if (text === undefined) throw lost();
  return text;
}

const secretText = (secret: Buffer | undefined): string | undefined =>
  secret === undefined ? undefined : `whsec_${secret.toString('base64')}`;

const lost = (): UnavailableError =>
  new UnavailableError('the secret of a webhook endpoint is not in the key store: rotate it');
