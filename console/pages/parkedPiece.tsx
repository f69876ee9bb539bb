/** A piece of parked work: what it belongs to, why it is parked, and what became of it. */
import { may } from '../parts/action.js';
import { callerOf, Events } from '../parts/event.js';
import { Fields } from '../parts/fields.js';
import { Page, Shown } from '../parts/page.js';
import { PieceActions } from '../parts/parkedActions.js';
import { isInProgress, useParkedPiece } from '../service/parkedPiece.js';
import { Entity } from './parked.js';

/** @param id of the piece, or of what it belongs to */
export function ParkedPiece({ id }: { readonly id: string }) {
  const piece = useParkedPiece(id);
  return (
    <Page title={`Parked work ${id}`}>
      <Shown of={piece}>
        {(data) => {
          if (data === null) return <p>There is no such piece.</p>;
          const { id: _, events, by, settled, entity: _e, ...fields } = data;
          return (
            <>
              <Fields
                of={fields}
                texts={{
                  belongs_to: <Entity of={data} />,
                  decided_by: by === null ? '' : callerOf({ by }),
                  the_work_has_ended: settled ? 'Yes' : 'No',
                }}
              />
              {isInProgress(data) ? <p role="status">It is being done once more.</p> : null}
              {may(['support']) ? <h2>What can be done</h2> : null}
              <PieceActions piece={data} done={piece.reload} />
              <h2>What happened</h2>
              <Events events={events} />
            </>
          );
        }}
      </Shown>
    </Page>
  );
}
