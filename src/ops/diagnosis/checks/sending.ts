/** Webhooks, and what was to be sent at a time. */
import { ENABLE, type Found, ROTATE } from '../findings.js';

/** How the deliveries to an endpoint stand. Times are ISO 8601, UTC. */
export interface EndpointState {
  readonly endpoint_id: string;
  readonly owner: string;
  readonly disabled?: { readonly by: string; readonly at: string };
  /** Whether the key store does not have its present secret. */
  readonly secretLost?: boolean;
  readonly failing: boolean;
  readonly failures: number;
  readonly oldest: { readonly untried?: string; readonly failed?: string };
}

/** Age in ms from which an untried event is late, as in the alert, and a failed one counts against its endpoint. */
const LATE_MS = 300_000;
/** How long ago an endpoint may have been disabled, ms: later its owner has other ways of knowing. */
const DISABLED_MS = 7 * 86_400_000;

/** An owner without a token can't enable its endpoint. */
const OWNER_ACTIVE =
  'nothing, where that was meant; else gift import the owner with "active": true, who then enables the endpoint';

/**
 * @param now milliseconds since the epoch
 * @param held why outward work is held, so that no event is late; `undefined`: it is done
 */
export function checkWebhooks(endpoints: readonly EndpointState[], now: number, held: string | undefined): Found[] {
  const isLate = (at: string | undefined): boolean =>
    held === undefined && at !== undefined && now - Date.parse(at) > LATE_MS;
  return endpoints.flatMap(({ endpoint_id: id, owner, disabled, secretLost, failing, failures, oldest }): Found[] => {
    const named = `endpoint ${id} of ${owner}`;
    if (disabled !== undefined) {
      if (now - Date.parse(disabled.at) > DISABLED_MS) return [];
      return [
        {
          code: 'webhook_endpoint_disabled',
          what: `${named} was disabled at ${disabled.at} (${disabled.by})`,
          command: disabled.by === 'inactive' ? OWNER_ACTIVE : `${ENABLE}${id}`,
        },
      ];
    }
    if (secretLost === true)
      return [
        {
          code: 'webhook_secret_lost',
          what: `${named}: its secret is not in the key store`,
          command: `${ROTATE}${id}/secret`,
        },
      ];
    if (failing || isLate(oldest.failed))
      return [
        {
          code: 'webhook_endpoint_failing',
          what: `${named} failed ${failures} times in a row; the oldest event that waits is of ${oldest.failed ?? oldest.untried ?? 'now'}`,
          command: `gift webhooks attempts ${id}`,
        },
      ];
    if (!isLate(oldest.untried)) return [];
    return [{ code: 'webhooks_late', what: `${named}: an event of ${oldest.untried} was not tried yet` }];
  });
}

export interface LateSends {
  /** Purchases whose gifts are late; `more`: at least so many. */
  readonly count: number;
  readonly more: boolean;
  readonly example?: string;
}

export function checkSends({ count, more, example }: LateSends): Found[] {
  if (count === 0) return [];
  return [
    {
      code: 'sends_late',
      what: `${more ? 'over ' : ''}${count} ${count === 1 ? 'purchase was' : 'purchases were'} to be sent by now, such as ${example}`,
    },
  ];
}
