import { phoneStream, type Reservation } from '../../domain/account.js';
import { readReservation } from '../../commands/readStreams.js';
import type { Person } from '../../domain/erasure.js';
import { phoneSubject } from '../../domain/personalFields.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Subjects } from '../../runtime/personal/index.js';
import { type Names, namesOf } from './erasure/names.js';
import type { Whose } from './personTraces.js';

export interface Who extends Whose, Names {}

export interface WhoDeps {
  readonly events: Pick<EventStore, 'read' | 'readAll'>;
  readonly subjects: Pick<Subjects, 'find'>;
}

/** A person's names, and the numbers by which gifts were ever theirs. @throws UnavailableError */
export async function whoIs({ events, subjects }: WhoDeps, person: Person): Promise<Who> {
  if (person.kind === 'number')
    return { phoneIds: new Set([person.phoneId]), held: new Map(), usernames: [], numbers: [] };
  const { usernames, numbers } = await namesOf(events, person.userId);
  const held = new Map<string, Reservation>();
  for (const id of await subjects.find(numbers.map(phoneSubject)))
    if (id !== undefined) held.set(id, await readReservation(events, phoneStream(id)));
  return { userId: person.userId, phoneIds: new Set(), held, usernames, numbers };
}
