import { type DayReport, dayOf, reconcileDay, reconciliationReport } from '../../ops/reconciliation/reconcileDay.js';
import type { Difference } from '../../ops/reconciliation/reconcile.js';
import { DEFAULT_ZONE } from '../../ops/ranges/times.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { providersLedger } from '../../providers/payments/ledgers.js';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { ProviderError } from '../../providers/providerErrors.js';
import type { Exported, OpsRoute } from './frame.js';
import type { OpsDeps } from './deps.js';
import { dayParameter, orRefusal } from './ranges.js';
import { querySchema, textSchema } from '../pipeline/schemas.js';

export function reconciliationRoutes({ engines: { events, store }, payments, gifts }: OpsDeps): OpsRoute[] {
  // The ledger's module is loaded at the start: a later build of the program may remove its file.
  const openLedger = providersLedger(payments, store.records);
  // The failure is thrown where the promise is awaited.
  openLedger.catch(() => undefined);
  return [
    {
      method: 'GET',
      path: '/ops/payments/reconciliation',
      operation: 'reconcilePayments',
      summary: 'Compare a day of the payment provider with the log',
      description:
        'Compares the provider\'s own list of charges and refunds, and the prepaid wallets, with what the log says of a day. Newline-delimited JSON: a line `{action: "difference", …}` for each ' +
        '(`what`: `missing_here`, `missing_there`, `amount`, `currency`, `state`), then one `{action: "done", …}` with the sums of both sides. Without that last line the comparison was broken off.',
      tag: 'Audit',
      roles: ['auditor', 'support'],
      query: querySchema(
        {
          ...dayParameter('day', 'The day, `YYYY-MM-DD`; today ends now.'),
          time_zone: textSchema('The zone of the day (IANA).', { maxLength: 64, default: DEFAULT_ZONE }),
        },
        ['day'],
      ),
      answers: [{ status: 200, description: 'The differences, and the report.', contentType: 'application/x-ndjson' }],
      async handle({ query }) {
        const day = orRefusal(() =>
          dayOf(query['day'] as string, query['time_zone'] as string, {
            now: Date.parse(gifts.now()),
            settings: payments,
          }),
        );
        const compare = async (
          onDifference: (difference: Difference) => Promise<void>,
          signal: AbortSignal,
        ): Promise<DayReport> =>
          reconcileDay({ events, ledger: (await openLedger)() }, day, onDifference, signal).catch((error: unknown) => {
            if (error instanceof ProviderError || error instanceof RetryLaterError)
              throw new UnavailableError(error.message, { cause: error });
            throw error;
          });
        return {
          contentType: 'application/x-ndjson',
          records: () => exported(compare, (report, differences) => reconciliationReport(day, report, differences)),
        };
      },
    },
  ];
}

/** Yields differences as they are found, at the reader's pace; ends the comparison when the reader leaves. */
async function* exported(
  run: (onDifference: (difference: Difference) => Promise<void>, signal: AbortSignal) => Promise<DayReport>,
  last: (report: DayReport, differences: number) => object,
): AsyncGenerator<Exported> {
  const found: { readonly difference: Difference; readonly taken: () => void }[] = [];
  const abort = new AbortController();
  let wake = (): void => undefined;
  let ended = false;
  const onDifference = async (difference: Difference): Promise<void> => {
    if (abort.signal.aborted) return;
    await new Promise<void>((taken) => {
      found.push({ difference, taken });
      wake();
    });
  };
  const comparing = run(onDifference, abort.signal).finally(() => {
    ended = true;
    wake();
  });
  // A failure of the comparison is thrown where its promise is awaited.
  comparing.catch(() => undefined);
  let count = 0;
  try {
    for (;;) {
      const [one] = found;
      if (one !== undefined) {
        count++;
        yield { text: `${JSON.stringify({ action: 'difference', ...one.difference })}\n`, count: 1, position: null };
        found.shift();
        one.taken();
      } else if (ended) {
        break;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    yield { text: `${JSON.stringify(last(await comparing, count))}\n`, count: 0, position: null };
  } finally {
    abort.abort();
    for (const { taken } of found) taken();
    await comparing.catch(() => undefined);
  }
}
