import type { EvaluationReport, EvaluationResult, EvaluationTotals } from '@svc/core/contracts'
import { oneLine, table } from '@svc/plugin-kit'

const MOST_DETAILS = 50
const [NAME, REASON, REPLY] = [40, 200, 120]

const percent = (rate: number) => `${Math.round(rate * 100)} %`
const ms = (value: number) => `${Math.round(value)} ms`

/** The report as lines of a terminal. Texts of files and models have no control characters there. */
export function reportLines(report: EvaluationReport): string[] {
  const { targets, cases } = report
  const isCompared = targets.length === 2
  const caseHead = ['CASE', 'TARGET', 'PASSED', 'TOKENS', 'COST', 'P50', ...(isCompared ? ['BETTER'] : [])]
  const rows = cases.flatMap(entry =>
    entry.targets.map((totals, at) => [
      at === 0 ? oneLine(entry.case, NAME) : '',
      ...totalCells(totals),
      ...(isCompared ? [at === 0 ? oneLine(entry.better ?? '=', NAME) : ''] : []),
    ])
  )
  return [
    ...(rows.length > 0 ? [...table([caseHead, ...rows]), ''] : []),
    ...checkLines(report),
    ...detailLines(report.results),
    ...totalLines(report),
  ]
}

function totalCells({ target, samples, passed, tokens, cost, latency_ms: latency }: EvaluationTotals): string[] {
  return [
    oneLine(target, NAME),
    `${passed}/${samples}`,
    `${tokens.input}+${tokens.output}`,
    cost === undefined ? '-' : String(cost),
    latency === undefined ? '-' : ms(latency.p50),
  ]
}

/** Each check of cases with two targets: pass rate and score of both. */
function checkLines({ targets, cases }: EvaluationReport): string[] {
  if (targets.length !== 2) return []
  const rows = cases.flatMap(entry =>
    entry.checks.map(({ check, targets: found, better }, at) => [
      at === 0 ? oneLine(entry.case, NAME) : '',
      check,
      ...targets.map(({ target }) => {
        const own = found.find(one => one.target === target)
        return own === undefined
          ? '-'
          : `${percent(own.pass_rate)}${own.score === undefined ? '' : ` (${Number(own.score.toPrecision(4))})`}`
      }),
      oneLine(better ?? '=', NAME),
    ])
  )
  const head = ['CASE', 'CHECK', ...targets.map(({ target }) => oneLine(target, NAME)), 'BETTER']
  return rows.length === 0 ? [] : [...table([head, ...rows]), '']
}

/** What did not pass, and why. */
function detailLines(results: readonly EvaluationResult[]): string[] {
  const bad = results.filter(({ status }) => status !== 'passed')
  const lines = bad
    .slice(0, MOST_DETAILS)
    .flatMap(result => [
      `${result.status}: ${oneLine(result.case, NAME)} · ${oneLine(result.target, NAME)}${result.repeat > 1 ? ` · repeat ${result.repeat}` : ''}`,
      ...reasonsOf(result).map(reason => `  ${oneLine(reason, REASON)}`),
      ...(result.reply === '' ? [] : [`  reply: ${oneLine(result.reply, REPLY)}`]),
      ...(result.unrecorded === 0 ? [] : [`  tool calls that are not in the record: ${result.unrecorded}`]),
    ])
  const more = bad.length > MOST_DETAILS ? [`${bad.length - MOST_DETAILS} more did not pass`] : []
  return lines.length === 0 ? [] : [...lines, ...more, '']
}

const reasonsOf = ({ error, checks }: EvaluationResult): string[] => [
  ...(error === undefined ? [] : [`${error.code}: ${error.message}`]),
  ...checks.filter(({ passed }) => !passed).map(({ check, reason = 'did not pass' }) => `${check}: ${reason}`),
]

function totalLines({ complete, done, total, targets, better }: EvaluationReport): string[] {
  // judges and embeddings
  const isChecked = targets.some(({ check_tokens: used }) => used !== undefined)
  const checkHead = isChecked ? ['CHECK TOKENS', 'CHECK COST'] : []
  const head = ['TARGET', 'PASSED', 'FAILED', 'ERRORS', 'RATE', 'TOKENS', 'COST', ...checkHead, 'P50', 'P95', 'UNRECORDED']
  const rows = targets.map(
    ({ target, passed, failed, errors, pass_rate: rate, tokens, cost, latency_ms: latency, unrecorded, ...checks }) => [
      oneLine(target, NAME),
      ...[passed, failed, errors].map(String),
      percent(rate),
      `${tokens.input}+${tokens.output}`,
      cost === undefined ? '-' : String(cost),
      ...(isChecked ? checkCells(checks) : []),
      ...(latency === undefined ? ['-', '-'] : [ms(latency.p50), ms(latency.p95)]),
      String(unrecorded),
    ]
  )
  const wins = better?.cases.map(({ target, cases }) => `${oneLine(target, NAME)} in ${cases}`).join(', ')
  return [
    ...table([head, ...rows]),
    ...(wins === undefined ? [] : [`better: ${wins}, equal in ${better!.ties}`]),
    ...(complete ? [] : [`incomplete: ${done} of ${total} turns`]),
  ]
}

const checkCells = ({ check_tokens: used, check_cost: cost }: Pick<EvaluationTotals, 'check_tokens' | 'check_cost'>) => [
  used === undefined ? '-' : `${used.input}+${used.output}`,
  cost === undefined ? '-' : String(cost),
]

/** Characters that XML 1.0 does not allow, also as references, and further control characters: people print such files. */
const NOT_XML = /[^\t\n\r\u0020-\u007E\u00A0-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu
const REFERENCES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
}

/** Text for an attribute or an element. Line breaks are references, because a parser replaces them in attributes. */
const xml = (text: string) => text.replaceAll(NOT_XML, '\uFFFD').replaceAll(/[&<>"'\t\n\r]/g, char => REFERENCES[char] ?? char)

/** The report in the JUnit format: a suite for each target, a test case for each turn. */
export function junitOf({ targets, results }: EvaluationReport): string {
  const suites = targets.map(({ target, samples, failed, errors, cost, check_cost: checkCost }) => {
    const own = results.filter(result => result.target === target)
    const time = seconds(own.reduce((sum, { duration_ms: spent = 0 }) => sum + spent, 0))
    const counts = `tests="${samples}" failures="${failed}" errors="${errors}" time="${time}"`
    const costs = properties({ cost, check_cost: checkCost }, '    ')
    return `  <testsuite name="${xml(target)}" ${counts}>\n${costs}${own.map(testCase).join('')}  </testsuite>\n`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('')}</testsuites>\n`
}

/** What a turn cost, and what its judges and embeddings cost. */
function properties(costs: { readonly [name: string]: number | undefined }, indent: string): string {
  const known = Object.entries(costs).filter(([, value]) => value !== undefined)
  if (known.length === 0) return ''
  const lines = known.map(([name, value]) => `${indent}  <property name="${name}" value="${value}"/>\n`)
  return `${indent}<properties>\n${lines.join('')}${indent}</properties>\n`
}

const seconds = (value: number) => (value / 1000).toFixed(3)

function testCase(result: EvaluationResult): string {
  const name = result.repeat > 1 ? `${result.case} (${result.repeat})` : result.case
  const open = `    <testcase classname="${xml(result.target)}" name="${xml(name)}" time="${seconds(result.duration_ms ?? 0)}"`
  const priced = result.checks.flatMap(({ cost }) => cost ?? [])
  const checkCost = priced.length === 0 ? undefined : Number(priced.reduce((sum, cost) => sum + cost, 0).toFixed(6))
  const costs = properties({ cost: result.cost, check_cost: checkCost }, '      ')
  if (result.status === 'passed') return costs === '' ? `${open}/>\n` : `${open}>\n${costs}    </testcase>\n`
  const reasons = reasonsOf(result)
  const kind = result.status === 'error' ? 'error' : 'failure'
  const text = [...reasons, ...(result.reply === '' ? [] : [`reply: ${result.reply}`])].join('\n')
  return `${open}>\n${costs}      <${kind} message="${xml(reasons[0] ?? '')}">${xml(text)}</${kind}>\n    </testcase>\n`
}
