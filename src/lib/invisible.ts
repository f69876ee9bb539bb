/**
 * Characters without a visible form, for a class in a pattern with the flag `u`. They are format characters, fillers,
 * variation selectors, joiners, and the Braille pattern without dots.
 */
export const INVISIBLE = String.raw`\p{Cf}\p{Default_Ignorable_Code_Point}\u2800`;

const AROUND = new RegExp(`^[\\s${INVISIBLE}]+|[\\s${INVISIBLE}]+$`, 'gu');

/** The text without blanks and invisible characters around it. */
export const trimmed = (text: string): string => text.replace(AROUND, '');
