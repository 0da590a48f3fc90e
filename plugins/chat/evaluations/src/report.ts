import type {
  EvaluationCaseReport,
  EvaluationCheckResult,
  EvaluationComparison,
  EvaluationReport,
  EvaluationResult,
  EvaluationTotals,
} from '@svc/core/contracts'

/** What an evaluation runs, in the order of the request. */
export interface Outline {
  readonly cases: readonly string[]
  readonly targets: readonly string[]
  /** Number of results of a complete evaluation. */
  readonly total: number
}

/** The report of these results; also of a part of them. */
export function reportOf(outline: Outline, found: readonly EvaluationResult[]): EvaluationReport {
  const results = inOrder(outline, found)
  const byCase = Map.groupBy(results, result => result.case)
  const cases = [...byCase].map(([name, own]) => caseReport(name, outline.targets, own))
  return {
    complete: results.length === outline.total,
    done: results.length,
    total: outline.total,
    targets: outline.targets.map(target => totalsOf(target, results)),
    ...(outline.targets.length === 2 ? { better: countBetter(outline.targets, cases) } : {}),
    cases,
    results,
  }
}

function inOrder({ cases, targets }: Outline, results: readonly EvaluationResult[]): EvaluationResult[] {
  const places = new Map(cases.map((name, at) => [name, at]))
  const place = (result: EvaluationResult) => places.get(result.case) ?? cases.length
  return results.toSorted(
    (a, b) => place(a) - place(b) || targets.indexOf(a.target) - targets.indexOf(b.target) || a.repeat - b.repeat
  )
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const mean = (values: readonly number[]) => sum(values) / values.length
const rounded = (value: number, digits: number) => Number(value.toFixed(digits))

function totalsOf(target: string, all: readonly EvaluationResult[]): EvaluationTotals {
  const results = all.filter(result => result.target === target)
  const count = (status: EvaluationResult['status']) => results.filter(result => result.status === status).length
  const costs = results.flatMap(({ cost }) => cost ?? [])
  const times = results.flatMap(({ duration_ms: ms }) => ms ?? []).toSorted((a, b) => a - b)
  return {
    target,
    samples: results.length,
    passed: count('passed'),
    failed: count('failed'),
    errors: count('error'),
    pass_rate: results.length === 0 ? 0 : rounded(count('passed') / results.length, 4),
    tokens: { input: sum(results.map(({ tokens }) => tokens.input)), output: sum(results.map(({ tokens }) => tokens.output)) },
    ...(costs.length === 0 ? {} : { cost: rounded(sum(costs), 6) }),
    ...checkTotals(results.flatMap(({ checks }) => checks)),
    ...(times.length === 0 ? {} : { latency_ms: { p50: percentile(times, 0.5), p95: percentile(times, 0.95) } }),
    unrecorded: sum(results.map(({ unrecorded }) => unrecorded)),
  }
}

/** What the checks used. */
function checkTotals(checks: readonly EvaluationCheckResult[]): Pick<EvaluationTotals, 'check_tokens' | 'check_cost'> {
  const tokens = checks.flatMap(check => check.tokens ?? [])
  const costs = checks.flatMap(({ cost }) => cost ?? [])
  if (tokens.length === 0) return {}
  return {
    check_tokens: { input: sum(tokens.map(({ input }) => input)), output: sum(tokens.map(({ output }) => output)) },
    ...(costs.length === 0 ? {} : { check_cost: rounded(sum(costs), 6) }),
  }
}

/** The nearest rank in sorted values. */
const percentile = (values: readonly number[], part: number) => values[Math.max(0, Math.ceil(part * values.length) - 1)]!

function caseReport(name: string, targets: readonly string[], results: readonly EvaluationResult[]): EvaluationCaseReport {
  const totals = targets.map(target => totalsOf(target, results)).filter(({ samples }) => samples > 0)
  const better = betterOf(totals.map(({ target, pass_rate: rate }) => ({ target, value: rate })))
  return { case: name, targets: totals, checks: comparisons(targets, results), ...(better === undefined ? {} : { better }) }
}

/** The target with the higher value, if there are two and they differ. */
function betterOf(values: readonly { readonly target: string; readonly value: number }[]): string | undefined {
  const [a, b] = values
  if (a === undefined || b === undefined || a.value === b.value) return undefined
  return a.value > b.value ? a.target : b.target
}

/** Checks with a measured value, of which less is better. */
const LESS_IS_BETTER: readonly string[] = ['cost', 'latency']

function comparisons(targets: readonly string[], results: readonly EvaluationResult[]): EvaluationComparison[] {
  const places = Math.max(0, ...results.map(({ checks }) => checks.length))
  return Array.from({ length: places }, (_, at) => {
    const check = results.find(({ checks }) => checks[at] !== undefined)!.checks[at]!.check
    const found = targets.flatMap(target => {
      const own = results.flatMap(result => (result.target === target ? (result.checks[at] ?? []) : []))
      return own.length === 0 ? [] : [{ target, ...rateOf(own) }]
    })
    const better = betterOf(found.map(({ target, pass_rate: value }) => ({ target, value }))) ?? betterScore(check, found)
    return { check, targets: found, ...(better === undefined ? {} : { better }) }
  })
}

function rateOf(checks: readonly EvaluationCheckResult[]): { pass_rate: number; score?: number } {
  const scores = checks.flatMap(({ score }) => score ?? [])
  const rate = rounded(checks.filter(({ passed }) => passed).length / checks.length, 4)
  return { pass_rate: rate, ...(scores.length === 0 ? {} : { score: rounded(mean(scores), 6) }) }
}

/** With equal pass rates, the better mean score decides. */
function betterScore(check: string, found: EvaluationComparison['targets']): string | undefined {
  const sign = LESS_IS_BETTER.includes(check) ? -1 : 1
  const scored = found.flatMap(({ target, score }) => (score === undefined ? [] : [{ target, value: sign * score }]))
  return scored.length === found.length ? betterOf(scored) : undefined
}

function countBetter(targets: readonly string[], cases: readonly EvaluationCaseReport[]) {
  const compared = cases.filter(entry => entry.targets.length === 2)
  return {
    cases: targets.map(target => ({ target, cases: compared.filter(({ better }) => better === target).length })),
    ties: compared.filter(({ better }) => better === undefined).length,
  }
}

/** Lengths to which replies and reasons are cut until results are small enough. */
const LENGTHS = [2_000, 500, 100, 0]

/** Cuts replies and reasons until the results have at most so many characters of JSON. */
export function cutResults(results: readonly EvaluationResult[], most: number): readonly EvaluationResult[] {
  let made = results
  for (const length of LENGTHS) {
    made = results.map(result => cutResult(result, length))
    if (JSON.stringify(made).length <= most) break
  }
  return made
}

const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)}…` : text)

const cutResult = (result: EvaluationResult, length: number): EvaluationResult => ({
  ...result,
  reply: cut(result.reply, length),
  checks: result.checks.map(({ reason, ...check }) =>
    reason === undefined || length === 0 ? check : { ...check, reason: cut(reason, length) }
  ),
  ...(result.error === undefined
    ? {}
    : { error: { ...result.error, message: cut(result.error.message, Math.max(length, 100)) } }),
})
