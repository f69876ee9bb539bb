/** How the deliveries to each endpoint stand, from what is stored: also while no process delivers. */
import { inParallel } from '../lib/async/inParallel.js';
import type { Records } from '../ports/readStore.js';
import type { EndpointDocument, WebhookDocument } from '../projections/webhookEndpoints.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { Subjects } from '../runtime/personal/index.js';
import type { DeliveryState } from '../messages/webhookAttempts.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import { openBacklog } from './backlog.js';
import { type Progress, progressRecord, storedProgress } from './progress.js';
import { isFailing } from './verdict.js';

export interface EndpointOverview extends DeliveryState {
  readonly endpoint_id: string;
  readonly owner: string;
  /** Why and since when it is disabled, unless its owner did it; absent: it is enabled. */
  readonly disabled?: { readonly by: string; readonly at: string };
  /** Whether the key store does not have its present secret, so that nothing can be sent. */
  readonly secretLost: boolean;
}

interface StateDeps {
  readonly records: Pick<Records, 'get'>;
  readonly logId: string;
}

interface OverviewDeps extends StateDeps {
  readonly endpoints: Pick<ReadModel<WebhookDocument>, 'find'>;
  readonly subjects: Pick<Subjects, 'secrets'>;
}

const READ_AT_ONCE = 16;

/** @throws UnavailableError */
export async function deliveryState({ records, logId }: StateDeps, endpointId: string): Promise<DeliveryState> {
  const progress = storedProgress(await records.get<Progress>(progressRecord(endpointId)), logId);
  const backlog = openBacklog(progress?.waiting);
  return {
    failing: progress !== undefined && isFailing(progress),
    failures: progress?.failures ?? 0,
    waiting: backlog.size,
    oldest: backlog.oldest(),
  };
}

/** Endpoints that are enabled, and those that their owners did not disable themselves. @throws UnavailableError */
export async function endpointsOverview({ endpoints, subjects, ...deps }: OverviewDeps): Promise<EndpointOverview[]> {
  const found = await endpoints.find({ where: { state: { in: ['enabled', 'disabled'] } } });
  const overviews: EndpointOverview[] = [];
  await inParallel(found, READ_AT_ONCE, async ({ body }) => {
    const { endpoint_id, owner, secrets, disabled_by: by, disabled_at: at } = body as EndpointDocument;
    if (by === 'owner') return;
    overviews.push({
      endpoint_id,
      owner,
      ...(by === undefined || at === undefined ? {} : { disabled: { by, at } }),
      secretLost: await isLost(subjects, secrets),
      ...(await deliveryState(deps, endpoint_id)),
    });
  });
  return overviews;
}

/** False also where the key store does not answer, which is a fault of its own. */
async function isLost(subjects: Pick<Subjects, 'secrets'>, [newest]: EndpointDocument['secrets']): Promise<boolean> {
  if (newest === undefined) return false;
  try {
    return !(await subjects.secrets([newest.id])).has(newest.id);
  } catch (error) {
    if (error instanceof UnavailableError) return false;
    throw error;
  }
}
