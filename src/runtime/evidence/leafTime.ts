/** Times of events as a leaf has them: of each instant there is one text. */
import { MalformedEvidenceError } from './errors.js';

const FORM = /^\d{4}-\d\d-\d\dT(\d\d):(\d\d):(\d\d)\.(\d{3})Z$/;
const DAY_LENGTH = 'yyyy-mm-dd'.length;

/** Events that follow each other are mostly of one day, and Node's own parser takes ten times as long. */
let day = '';
let dayStart = Number.NaN;

/** Milliseconds since 1970. @param at ISO 8601, UTC, milliseconds @throws MalformedEvidenceError for any other text */
export function timeOf(at: string): number {
  const found = FORM.exec(at);
  if (found !== null) {
    if (!at.startsWith(day) || day === '')
      [day, dayStart] = [at.slice(0, DAY_LENGTH), startOf(at.slice(0, DAY_LENGTH))];
    const [, hours, minutes, seconds, ms] = found as unknown as readonly string[];
    const [h, m, s] = [Number(hours), Number(minutes), Number(seconds)];
    if (h < 24 && m < 60 && s < 60 && dayStart >= 0) return dayStart + ((h * 60 + m) * 60 + s) * 1_000 + Number(ms);
  }
  throw new MalformedEvidenceError(`${JSON.stringify(at.slice(0, 40))} is no time as the service writes it`);
}

/** NaN for a day that no month has. */
function startOf(asked: string): number {
  const start = Date.parse(`${asked}T00:00:00.000Z`);
  return !Number.isNaN(start) && new Date(start).toISOString().startsWith(asked) ? start : Number.NaN;
}
