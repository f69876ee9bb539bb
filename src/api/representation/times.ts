/** Times as the contract spells them. All are UTC. */

/** An ISO 8601 time as `YYYY-MM-DD HH:MM:SS`. */
export const plainTime = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)}`;

/** The date of an ISO 8601 time. */
export const dateOf = (iso: string): string => iso.slice(0, 10);

/** The time of day of an ISO 8601 time, `HH:MM:SS`. */
export const timeOfDay = (iso: string): string => iso.slice(11, 19);
