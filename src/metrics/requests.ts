/** Counts of requests by route. Once a route was answered, counting allocates nothing. */
import { counts } from './counts.js';
import type { Exposition } from './exposition.js';
import { type Histogram, histogram } from './histogram.js';

/** @param route pattern of the route; absent: the request matched no route */
export type RequestTally = (method: string, route: string | undefined, status: number, milliseconds: number) => void;

/** Methods that are counted under their names. Any other method, which a client may make up, counts as `other`. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS']);
/**
 * Answers of which an alert tells each. They are shown from the start, with 0: an alert sees no increase in a series
 * that starts with its first answer.
 */
const SHOWN_FROM_START = [{ method: 'POST', route: '/ops/people/:personId/erasure', status: 202 }] as const;

interface RouteTally {
  readonly method: string;
  readonly route: string;
  readonly durations: Histogram;
  readonly statuses: Map<number, number>;
}

export function countRequests(show: Exposition): RequestTally {
  const methods = new Map<string, Map<string, RouteTally>>();
  const all: RouteTally[] = [];

  const begin = (method: string, route: string): RouteTally => {
    const known = METHODS.has(method) ? method : 'other';
    let routes = methods.get(known);
    if (routes === undefined) methods.set(known, (routes = new Map()));
    let tally = routes.get(route);
    if (tally === undefined) {
      tally = { method: known, route, durations: histogram(), statuses: new Map() };
      routes.set(route, tally);
      all.push(tally);
    }
    return tally;
  };
  for (const { method, route, status } of SHOWN_FROM_START) begin(method, route).statuses.set(status, 0);

  show.counter(
    {
      name: 'gift_http_requests_total',
      help: 'Requests answered, by method, route pattern and status',
      labels: ['method', 'route', 'status'],
    },
    function* () {
      for (const { method, route, statuses } of all)
        for (const [status, count] of statuses) yield [[method, route, status], count];
    },
  );
  show.histogram(
    {
      name: 'gift_http_request_duration_seconds',
      help: 'Time from a request to its answer',
      labels: ['method', 'route'],
    },
    function* () {
      for (const { method, route, durations } of all) yield [[method, route], durations];
    },
  );

  return (method, route = 'unknown', status, milliseconds) => {
    const tally = methods.get(method)?.get(route) ?? begin(method, route);
    tally.statuses.set(status, (tally.statuses.get(status) ?? 0) + 1);
    tally.durations.observe(milliseconds / 1000);
  };
}

/** Operations by which a gift could come to a staff account. */
const STAFF_GETS = [
  'claimGift',
  'generateVoucher',
  'generateVoucherV1',
  'getVoucher',
  'reassignGift',
  'redeemGift',
] as const;

/** Counts a refusal. `operation`: its name in the API's description. */
export type StaffTally = (operation: string) => void;

/** Counts requests refused since a gift would come to a staff account (docs/api/tokens.md#staff-accounts). */
export function countStaffRefused(show: Exposition): StaffTally {
  const refused = counts(1, STAFF_GETS);
  show.counter(
    {
      name: 'gift_staff_gifts_refused_total',
      help: 'Requests refused since a gift would have come to a staff account, by operation',
      labels: ['operation'],
    },
    refused.samples,
  );
  return (operation) => refused.add(operation);
}
