/** The log's evidence at a glance: its signed heads, and who has cosigned them (docs/support.md#evidence-at-a-glance). */
import type { EvidenceView } from '../../src/ops/evidence/index.js';
import { get } from '../service/call.js';
import { useLoaded } from '../service/loaded.js';
import { Shown } from './page.js';
import { type Column, Table } from './table.js';
import { count, Time } from './text.js';

type Head = EvidenceView['heads'][number];
type Verification = NonNullable<EvidenceView['last_verified']>;

const COLUMNS: readonly Column<Head>[] = [
  { name: 'Signed at', cell: ({ at }) => <Time at={at} /> },
  { name: 'Events', cell: ({ size }) => (size === null ? 'not a head' : count(size)), number: true },
  { name: 'Root', cell: ({ root }) => <code>{root ?? '–'}</code> },
  { name: 'Published', cell: ({ published }) => (published ? 'yes' : 'no') },
  { name: 'Cosigned by', cell: ({ cosigned_by }) => cosigned_by.map(({ witness }) => witness).join(', ') || '–' },
];

export function Evidence() {
  const evidence = useLoaded(async (signal) => get<{ readonly data: EvidenceView }>('ops/evidence', { signal }), []);
  return (
    <Shown of={evidence}>
      {({ data: { origin, heads, not_cosigned_by: missing, uncovered_since: since, last_verified: last } }) => (
        <>
          <p>
            {origin === null ? 'Nothing is signed yet.' : `The log is ${origin}.`}{' '}
            {since === null ? (
              'Every event is under a signed head.'
            ) : (
              <>
                Events since <Time at={since} /> are not under a signed head yet.
              </>
            )}{' '}
            {missing.length === 0 ? '' : `These witnesses have not cosigned the published head: ${missing.join(', ')}.`}
          </p>
          <Table
            caption="Signed heads, the latest first"
            columns={COLUMNS}
            rows={heads}
            keyOf={({ at, position }) => `${at} ${position}`}
            none="There is no signed head."
          />
          <p>
            {last === null ? 'No verification of the whole log is recorded.' : <LastVerified of={last} />} It is
            verified on the command line, against keys and heads that were retained elsewhere:{' '}
            <code>gift audit verify --key KEY --checkpoint FILE</code>
          </p>
        </>
      )}
    </Shown>
  );
}

function LastVerified({ of: { at, by, events } }: { readonly of: Verification }) {
  return (
    <>
      The whole log was last found as it was signed at <Time at={at} />, by <bdi>{by ?? 'somebody'}</bdi> (
      {count(events)} events).
    </>
  );
}
