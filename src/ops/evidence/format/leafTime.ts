/** Parses times of events for their leaves. Only one text form is accepted for each instant. */
import { MalformedEvidenceError } from './errors.js';

/** The form of a time, in which `0` stands for any digit. */
const FORM = '0000-00-00T00:00:00.000Z';
const DAY_LENGTH = 'yyyy-mm-dd'.length;
const [ZERO, NINE] = [0x30, 0x39];

/** The last parsed day: consecutive events are mostly of one day, and Node's own parser takes ten times as long. */
let day = '';
let dayStart = Number.NaN;

/** Milliseconds since 1970. @param at ISO 8601, UTC, milliseconds @throws MalformedEvidenceError for any other text */
export function timeOf(at: string): number {
  if (hasForm(at)) {
    if (!at.startsWith(day) || day === '')
      [day, dayStart] = [at.slice(0, DAY_LENGTH), startOf(at.slice(0, DAY_LENGTH))];
    const [h, m, s] = [two(at, 11), two(at, 14), two(at, 17)];
    const ms = digit(at, 20) * 100 + two(at, 21);
    if (h < 24 && m < 60 && s < 60 && dayStart >= 0) return dayStart + ((h * 60 + m) * 60 + s) * 1_000 + ms;
  }
  throw new MalformedEvidenceError(`${JSON.stringify(at.slice(0, 40))} is no time as the service writes it`);
}

/** Whether a text has the form of a time. A regular expression takes five times as long. */
function hasForm(at: string): boolean {
  if (at.length !== FORM.length) return false;
  for (let index = 0; index < FORM.length; index++) {
    const [code, wanted] = [at.charCodeAt(index), FORM.charCodeAt(index)];
    if (wanted === ZERO ? code < ZERO || code > NINE : code !== wanted) return false;
  }
  return true;
}

const digit = (at: string, index: number): number => at.charCodeAt(index) - ZERO;
const two = (at: string, index: number): number => digit(at, index) * 10 + digit(at, index + 1);

/** Start of a day in milliseconds since 1970; NaN for a day that no month has. */
function startOf(asked: string): number {
  const start = Date.parse(`${asked}T00:00:00.000Z`);
  return !Number.isNaN(start) && new Date(start).toISOString().startsWith(asked) ? start : Number.NaN;
}
