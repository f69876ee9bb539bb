/** Times in the contract's formats, UTC. */

/** Date and time as `YYYY-MM-DD HH:MM:SS`. */
export const plainTime = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)}`;

export const dateOf = (iso: string): string => iso.slice(0, 10);

/** Time of the day as `HH:MM:SS`. */
export const timeOfDay = (iso: string): string => iso.slice(11, 19);
