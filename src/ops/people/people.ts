import { type Person } from '../../domain/erasure.js';
import { phoneSubject } from '../../domain/personalFields.js';
import { readPhoneNumber } from '../../domain/phoneNumber.js';
import { Refusal } from '../../domain/refusal.js';
import type { Records } from '../../ports/readStore.js';
import { findPeople, type FoundPeople, type PeopleBy } from './findPeople.js';
import { isKnown, type PersonRecord, personRecord } from './personRecord.js';
import type { PeopleLog } from './personTraces.js';

/** What support does for persons of a log. All methods throw UnavailableError. */
interface People {
  /** @throws Refusal `invalid_phone_number` */
  find(by: PeopleBy, text: string): Promise<FoundPeople>;
  /** Whether there is, or was, such a person. */
  isKnown(person: Person): Promise<boolean>;
  /** Everything that is stored about a person. @throws Refusal `person_not_found` */
  record(person: Person, records: Records): Promise<PersonRecord>;
  /**
   * The person of a number. Unlike `find`, it finds a number that is being erased, so that the erasure can be repeated.
   * @throws Refusal `invalid_phone_number`, `person_not_found`
   */
  withNumber(text: string): Promise<Person>;
}

export const openPeople = (log: PeopleLog): People => ({
  find: async (by, text) => findPeople(log, by, text),
  isKnown: async (person) => isKnown(log, person),
  record: async (person, records) => personRecord(log, person, records),
  async withNumber(text) {
    const number = readPhoneNumber(text);
    if (number === undefined) throw new Refusal('invalid_phone_number');
    const [row] = await log.subjects.rowsForErasure([phoneSubject(number)]);
    if (row === undefined) throw new Refusal('person_not_found');
    return { kind: 'number', phoneId: row.id };
  },
});
