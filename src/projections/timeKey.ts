/**
 * A time that sorts as text, in milliseconds: shorter than ISO 8601, since it is part of ids and indexes.
 * @param at ISO 8601
 */
export const timeKey = (at: string): string => Date.parse(at).toString(36).padStart(TIME_KEY_LENGTH, '0');

/** Number of characters of a time key: enough until the year 5188. */
export const TIME_KEY_LENGTH = 9;

/** Time of a key: ISO 8601, UTC, milliseconds. */
export const timeOfKey = (key: string): string => new Date(Number.parseInt(key, 36)).toISOString();
