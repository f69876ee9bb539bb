/** Erasures of persons that are requested or in progress. */
import type { ErasureRequestView } from '../../src/ops/people/erasure/erasures.js';
import { useErasures } from '../parts/erasure.js';
import { Page, Shown } from '../parts/page.js';
import { type Column, Table } from '../parts/table.js';
import { Id, personPath, Time, words } from '../parts/text.js';

const COLUMNS: readonly Column<ErasureRequestView>[] = [
  { name: 'Person', cell: ({ person }) => <Id of={person} to={personPath} /> },
  { name: 'Status', cell: ({ status }) => words(status) },
  { name: 'Due', cell: ({ due_at }) => <Time at={due_at} /> },
  { name: 'Requested', cell: ({ requested_at }) => <Time at={requested_at} /> },
  { name: 'By', cell: ({ requested_by }) => requested_by ?? '–' },
  { name: 'Reason', cell: ({ reason }) => reason },
];

export function Erasures() {
  const requests = useErasures();
  return (
    <Page
      title="Requested erasures"
      lead="Persons who are to be forgotten. An erasure is approved or withdrawn on the person’s page."
    >
      <Shown of={requests}>
        {({ data }) => (
          <Table
            caption="Erasures, the first due one first"
            columns={COLUMNS}
            rows={data}
            keyOf={({ id }) => id}
            none="No erasure is requested."
          />
        )}
      </Shown>
    </Page>
  );
}
