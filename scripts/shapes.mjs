/**
 * The linter's rules for the shape of functions (docs/design.md#style), a plugin of oxlint. `.oxlintrc.json` turns them
 * on for `src`.
 */

/** Lines of code of a function at most: comments, blank lines and the table that it returns do not count. */
const MOST_LINES = 120;
/** A function with more `let`s of its own and more functions in it than these keeps a state without a name. */
const MOST_LETS = 5;
const MOST_INNER = 8;

const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];

/** Name of a function, or of the variable or property that holds it. */
const nameOf = ({ id, parent }) => id?.name ?? parent.id?.name ?? parent.key?.name ?? 'a function without a name';

/** The place of a finding is the function's first line, so that its whole text is not shown. */
const placeOf = ({ loc: { start } }) => ({ start, end: { line: start.line, column: start.column + 1 } });

/** Number of the lines of a node that hold a token. */
function linesOf(sourceCode, node) {
  const lines = new Set();
  for (const { loc } of sourceCode.getTokens(node))
    for (let line = loc.start.line; line <= loc.end.line; line++) lines.add(line);
  return lines.size;
}

/**
 * A rule that judges each function at its end. @param visit further visitors, called with what returns the record of
 * the function that they are in; @param judge returns what is wrong with a function, or nothing
 */
const functionRule = (visit, judge) => ({
  create(context) {
    const { sourceCode } = context;
    const open = [];
    const enter = (node) => void open.push({ node, lets: 0, inner: 0, tables: [] });
    const end = () => {
      const ended = open.pop();
      for (const outer of open) outer.inner += 1;
      const fault = judge(ended, sourceCode);
      if (fault !== undefined) context.report({ loc: placeOf(ended.node), message: `${nameOf(ended.node)} ${fault}` });
    };
    return {
      ...Object.fromEntries(
        FUNCTIONS.flatMap((type) => [
          [type, enter],
          [`${type}:exit`, end],
        ]),
      ),
      ...visit(() => open.at(-1)),
    };
  },
});

/** A list that a function returns, such as a router's routes, is a table: each function in it counts for itself. */
const functionLength = functionRule(
  (current) => ({
    ReturnStatement({ argument }) {
      if (argument?.type === 'ArrayExpression') current().tables.push(argument);
    },
  }),
  ({ node, tables }, sourceCode) => {
    if (node.loc.end.line - node.loc.start.line < MOST_LINES) return undefined;
    const lines = tables.reduce((left, table) => left - linesOf(sourceCode, table), linesOf(sourceCode, node));
    return lines > MOST_LINES ? `has ${lines} lines of code: at most ${MOST_LINES}` : undefined;
  },
);

const closureState = functionRule(
  (current) => ({
    VariableDeclaration({ kind, declarations }) {
      const owner = current();
      if (kind === 'let' && owner !== undefined) owner.lets += declarations.length;
    },
  }),
  ({ lets, inner }) =>
    lets > MOST_LETS && inner > MOST_INNER
      ? `has ${lets} lets and ${inner} functions in it: name its state, and write functions over that`
      : undefined,
);

export default {
  meta: { name: 'shapes' },
  rules: { 'function-length': functionLength, 'closure-state': closureState },
};
