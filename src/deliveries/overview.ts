/** How the deliveries to each endpoint stand, from what is stored: also while no process delivers. */
import { inParallel } from '../lib/async/inParallel.js';
import type { Records } from '../ports/readStore.js';
import type { EndpointDocument, WebhookDocument } from '../projections/webhookEndpoints.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import { openBacklog } from './backlog.js';
import { type Progress, progressRecord, storedProgress } from './progress.js';
import { isFailing } from './verdict.js';

/** Times are ISO 8601, UTC. */
export interface EndpointOverview {
  readonly endpoint_id: string;
  readonly owner: string;
  /** Why and since when it is disabled, unless its owner did it; absent: it is enabled. */
  readonly disabled?: { readonly by: string; readonly at: string };
  /** Whether several attempts in a row failed. */
  readonly failing: boolean;
  /** Failures since the last success. */
  readonly failures: number;
  /** See `Backlog.oldest`. */
  readonly oldest: { readonly untried?: string; readonly failed?: string };
}

interface OverviewDeps {
  readonly endpoints: Pick<ReadModel<WebhookDocument>, 'find'>;
  readonly records: Pick<Records, 'get'>;
  readonly logId: string;
}

const READ_AT_ONCE = 16;

/** Endpoints that are enabled, and those that their owners did not disable themselves. @throws UnavailableError */
export async function endpointsOverview({ endpoints, records, logId }: OverviewDeps): Promise<EndpointOverview[]> {
  const found = await endpoints.find({ where: { state: { in: ['enabled', 'disabled'] } } });
  const overviews: EndpointOverview[] = [];
  await inParallel(found, READ_AT_ONCE, async ({ body }) => {
    const { endpoint_id, owner, disabled_by: by, disabled_at: at } = body as EndpointDocument;
    if (by === 'owner') return;
    const progress = storedProgress(await records.get<Progress>(progressRecord(endpoint_id)), logId);
    overviews.push({
      endpoint_id,
      owner,
      ...(by === undefined || at === undefined ? {} : { disabled: { by, at } }),
      failing: progress !== undefined && isFailing(progress),
      failures: progress?.failures ?? 0,
      oldest: openBacklog(progress?.waiting).oldest(),
    });
  });
  return overviews;
}
