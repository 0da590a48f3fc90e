import { styleText } from 'node:util'
import { clipped, counted, milliseconds, shortName, table, visible } from './command/text.ts'
import type { PluginUsage } from './usage.ts'

/** What was done since the look before, by plugin. */
export interface Recent {
  readonly seconds: number
  readonly of: ReadonlyMap<string, PluginUsage>
}

interface Column {
  readonly head: string
  readonly cell: (one: PluginUsage) => string
}

/** Characters of a name where there is room, and where there is little. */
const [LONG_NAME, SHORT_NAME] = [34, 20]
/** What a narrow terminal does without, in this order: what is left tells nearly the same, or is of those in a process of their own. */
const DISPENSABLE = ['TIME', '/S', 'CPU', 'MEMORY', 'BUSY', 'CALLS']
const MIB = 1_048_576

/** A row a plugin, no wider than so many characters: names are shortened first, then whole columns left out. */
export function usageTable(
  all: readonly PluginUsage[],
  { recent, width }: { readonly recent?: Recent; readonly width: number }
): string {
  const columns = [...rateColumns(recent), ...COLUMNS]
  for (let out = 0; out <= DISPENSABLE.length; out++) {
    const gone = DISPENSABLE.slice(0, out)
    const kept = columns.filter(one => !gone.includes(one.head))
    const room = width - widthOf(rowsOf(all, kept, 0))
    if (room >= SHORT_NAME || out === DISPENSABLE.length)
      return painted(all, rowsOf(all, kept, Math.min(LONG_NAME, Math.max(room, SHORT_NAME))))
  }
  return ''
}

const COLUMNS: readonly Column[] = [
  { head: 'CALLS', cell: one => counted(one.calls) },
  { head: 'ERRORS', cell: one => counted(one.errors) },
  { head: 'TIME', cell: one => milliseconds(one.ms) },
  { head: 'MEMORY', cell: ({ isolated }) => (isolated ? `${counted(isolated.memoryBytes / MIB)} MiB` : '') },
  { head: 'CPU', cell: ({ isolated }) => (isolated ? milliseconds(isolated.cpuMs) : '') },
  {
    head: 'RESTARTS',
    cell: ({ isolated }) => (isolated ? (isolated.quarantined ? 'quarantined' : counted(isolated.restarts)) : ''),
  },
  { head: 'REFUSED', cell: ({ isolated }) => (isolated ? counted(isolated.refusals) : '') },
]

/** How often, and how much of one processor's time: above 100 % where calls overlap. */
function rateColumns(recent: Recent | undefined): readonly Column[] {
  if (recent === undefined) return []
  const of = ({ name }: PluginUsage) => recent.of.get(name)
  return [
    { head: '/S', cell: one => counted((of(one)?.calls ?? 0) / recent.seconds) },
    { head: 'BUSY', cell: one => `${((of(one)?.ms ?? 0) / 10 / recent.seconds).toFixed(1)} %` },
  ]
}

const rowsOf = (all: readonly PluginUsage[], columns: readonly Column[], name: number): string[] => {
  const nameCell = (text: string) => (name === 0 ? '' : clipped(visible(text), name))
  const cells = all.map(one => [nameCell(shortName(one.name)), ...columns.map(({ cell }) => cell(one))])
  const sides = ['left' as const, ...columns.map(() => 'right' as const)]
  return table([[nameCell('PLUGIN'), ...columns.map(one => one.head)], ...cells], sides).split('\n')
}

const widthOf = (rows: readonly string[]) => Math.max(...rows.map(row => row.length))

function painted(all: readonly PluginUsage[], [head = '', ...lines]: readonly string[]): string {
  const paint = (line: string, at: number) => (isBad(all[at]!) ? styleText('red', line, { stream: process.stdout }) : line)
  return [styleText('bold', head, { stream: process.stdout }), ...lines.map(paint)].join('\n')
}

const isBad = ({ isolated }: PluginUsage) => isolated !== undefined && (isolated.quarantined || isolated.restarts > 0)
