/** Requests of an endpoint's owner to its deliveries: read from the log, and done once stored in the progress. */
import type { Position } from '../ports/eventStore.js';
import { entryId, type FeedDocument, type FeedEntry } from '../projections/feed/feed.js';
import { viewerOf } from '../projections/feed/feedPage.js';
import {
  type DeliveryRequest,
  type EndpointDocument,
  positionOfRequest,
  requestDocument,
  requestsEnd,
  type WebhookDocument,
} from '../projections/webhookEndpoints.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { Waiting } from './backlog.js';
import { isSeenBy, waitingEntry } from './message.js';
import { isRepeated, type Progress, withRecovery } from './progress.js';

const PAGE = 100;

interface RequestDeps {
  readonly feed: Pick<ReadModel<FeedDocument>, 'get'>;
  readonly endpoints: Pick<ReadModel<WebhookDocument>, 'find'>;
  readonly now: () => string;
}

interface TakenRequests {
  readonly items: readonly Waiting[];
  readonly change: (progress: Progress) => Progress;
  /** Position of the last request taken. */
  readonly requested: Position;
}

/**
 * The next requests after those that the progress includes.
 * @returns `undefined`: there are none. @throws UnavailableError
 */
export async function nextRequests(
  { feed, endpoints, now }: RequestDeps,
  endpoint: EndpointDocument,
  { requested, waiting }: Progress,
): Promise<TakenRequests | undefined> {
  const { endpoint_id: id } = endpoint;
  if (endpoint.requested === undefined || endpoint.requested <= (requested ?? '')) return undefined;
  const found = await endpoints.find({
    where: { id: { gt: requestDocument(id, requested ?? ''), lt: requestsEnd(id) } },
    sort: [['id', 1]],
    limit: PAGE,
  });
  const items: Waiting[] = [];
  const changes: ((progress: Progress) => Progress)[] = [];
  for (const { id: documentId, body } of found) {
    const order = body as DeliveryRequest;
    if (requested === undefined && !isRepeated(order.at, Date.parse(now()))) continue;
    const position = positionOfRequest(documentId);
    const { request } = order;
    switch (request.kind) {
      case 'ping':
        items.push({ position, key: `ping/${order.id}`, at: order.at, ping: order.id, tries: 0, requested: true });
        break;
      case 'resend': {
        const entry = (await feed.get(entryId(request.position))) as FeedEntry | undefined;
        // In a copy of the log another event may have this position.
        if (entry?.event_id === request.event_id && isSeenBy(viewerOf(endpoint.owner), entry))
          items.push({ ...waitingEntry(request.position, entry), requested: true });
        break;
      }
      case 'recover':
        items.push(...waiting.filter(({ at }) => at >= request.since));
        changes.push((progress) => withRecovery(progress, request.since));
        break;
      default:
        request satisfies never;
    }
  }
  const last = found.at(-1);
  const reached = last === undefined ? endpoint.requested : positionOfRequest(last.id);
  return {
    items,
    change: (progress) => ({ ...changes.reduce((now, change) => change(now), progress), requested: reached }),
    requested: reached,
  };
}
