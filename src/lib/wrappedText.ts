/** Text in lines of a terminal's width. */

/**
 * Wraps words in lines of at most `width` columns; a wider word is cut. East Asian characters and emoji take two
 * columns. @param firstIndent the beginning of the first line; `indent`: of the others
 */
export function wrapped(text: string, width: number, indent: string, firstIndent: string): string[] {
  const lines: string[] = [];
  let line = firstIndent;
  let used = firstIndent.length;
  let empty = true;
  const end = (): void => {
    lines.push(line.trimEnd());
    line = indent;
    used = indent.length;
    empty = true;
  };
  for (const word of text.split(' ')) {
    const wide = widthOf(word);
    if (!empty && used + 1 + wide > width) end();
    if (!empty) {
      line += ' ';
      used += 1;
    }
    for (const sign of word) {
      const its = widthOf(sign);
      if (used + its > width) end();
      line += sign;
      used += its;
      empty = false;
    }
    empty = false;
  }
  end();
  return lines;
}

/** Columns of a terminal that a text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const sign of text)
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u.test(
        sign,
      )
        ? 2
        : 1;
  return width;
}
