/** All webhook endpoints as support sees them (docs/support.md#webhooks). */
import { inParallel } from '../../lib/async/inParallel.js';
import type { DeliveryState } from '../../messages/webhookAttempts.js';
import type { Records } from '../../ports/readStore.js';
import { type EndpointDocument, endpointDocument, type WebhookDocument } from '../../projections/webhookEndpoints.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { type AttemptRow, attemptRow, attemptsOf } from './attempts.js';

/** An endpoint as its owner set it up. Times are ISO 8601, UTC. */
export interface EndpointRow {
  readonly id: string;
  readonly url: string;
  readonly types: readonly string[] | null;
  readonly description: string | null;
  readonly disabled: boolean;
  readonly disabled_by: string | null;
  readonly disabled_at: string | null;
  readonly created_at: string;
}

export interface WebhookRow extends EndpointRow {
  /** `client:{id}` or `merchant:{id}`. */
  readonly owner: string;
  readonly failing: boolean;
  readonly failures: number;
  readonly waiting: number;
  readonly oldest_undelivered_at: string | null;
  readonly oldest_undelivered_seconds: number | null;
  readonly last_attempt: AttemptRow | null;
}

interface WebhookListDeps {
  readonly endpoints: Pick<ReadModel<WebhookDocument>, 'find'>;
  readonly records: Pick<Records, 'list'>;
  readonly logId: string;
  readonly stateOf: (endpointId: string) => Promise<DeliveryState>;
  /** The present, ISO 8601, UTC. */
  readonly now: () => string;
}

const READ_AT_ONCE = 16;
/** A text that sorts after the ids of all endpoints. */
const ENDPOINTS_END = 'endpoint0';

/**
 * Endpoints that were not deleted, in the order of their ids. `next`: the id of the last one, where there are more.
 * @throws UnavailableError
 */
export async function webhookRows(
  deps: WebhookListDeps,
  { limit, after = '' }: { readonly limit: number; readonly after?: string | undefined },
): Promise<{ readonly rows: readonly WebhookRow[]; readonly next: string | null }> {
  const found: EndpointDocument[] = [];
  for (let from = endpointDocument(after); found.length <= limit;) {
    const page = await deps.endpoints.find({
      where: { id: { gt: from, lt: ENDPOINTS_END } },
      sort: [['id', 1]],
      limit: limit + 1,
    });
    found.push(...page.map(({ body }) => body as EndpointDocument).filter(({ state }) => state !== 'deleted'));
    const last = page.at(-1);
    if (last === undefined || page.length <= limit) break;
    from = last.id;
  }
  const shown = found.slice(0, limit);
  const rows = new Map<string, WebhookRow>();
  await inParallel(shown, READ_AT_ONCE, async (endpoint) => {
    rows.set(endpoint.endpoint_id, await rowOf(deps, endpoint));
  });
  return {
    rows: shown.flatMap(({ endpoint_id }) => rows.get(endpoint_id) ?? []),
    next: found.length > limit ? (shown.at(-1)?.endpoint_id ?? null) : null,
  };
}

async function rowOf(
  { records, logId, stateOf, now }: WebhookListDeps,
  endpoint: EndpointDocument,
): Promise<WebhookRow> {
  const { endpoint_id: id, owner } = endpoint;
  const [{ failing, failures, waiting, oldest }, [last]] = await Promise.all([stateOf(id), attemptsOf(records, id)]);
  const [oldestAt] = [oldest.untried ?? [], oldest.failed ?? []].flat().toSorted();
  return {
    ...endpointRow(endpoint),
    owner,
    failing,
    failures,
    waiting,
    oldest_undelivered_at: oldestAt ?? null,
    oldest_undelivered_seconds:
      oldestAt === undefined ? null : Math.max(0, Math.round((Date.parse(now()) - Date.parse(oldestAt)) / 1_000)),
    last_attempt: last === undefined ? null : attemptRow(last, logId),
  };
}

export function endpointRow(endpoint: EndpointDocument): EndpointRow {
  const { endpoint_id: id, url, types, description, state, disabled_by, disabled_at, created_at } = endpoint;
  return {
    id,
    url,
    types,
    description,
    disabled: state === 'disabled',
    disabled_by: disabled_by ?? null,
    disabled_at: disabled_at ?? null,
    created_at,
  };
}
