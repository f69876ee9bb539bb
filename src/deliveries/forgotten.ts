/** Removal of what is stored of the deliveries to endpoints that were deleted. */
import { attemptRecords } from '../messages/webhookAttempts.js';
import type { Records } from '../ports/readStore.js';
import type { EndpointDocument, WebhookDocument } from '../projections/webhookEndpoints.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import { abandonedRecords } from './abandoned.js';
import { PROGRESS, progressRecord } from './progress.js';

/** Deletes all records of an endpoint that was deleted. Its progress is last, so that a later call finds the rest. */
export async function forgetEndpoint(records: Records, id: string): Promise<void> {
  for (const prefix of [attemptRecords(id), abandonedRecords(id)])
    for (const { key } of await records.list(prefix)) await records.delete(key);
  await records.delete(progressRecord(id));
}

/**
 * Deletes the records of endpoints that were deleted while no process delivered.
 * @param enabled has the ids of endpoints that deliver here
 * @throws UnavailableError
 */
export async function forgetDeleted(
  { records, endpoints }: { readonly records: Records; readonly endpoints: Pick<ReadModel<WebhookDocument>, 'find'> },
  enabled: { has(id: string): boolean },
): Promise<void> {
  const stored = new Set((await records.list(PROGRESS)).map(({ key }) => key.slice(PROGRESS.length)));
  if ([...stored].every((id) => enabled.has(id))) return;
  for (const { body } of await endpoints.find({ where: { state: 'deleted' } })) {
    const { endpoint_id: id } = body as EndpointDocument;
    if (stored.has(id)) await forgetEndpoint(records, id);
  }
}
