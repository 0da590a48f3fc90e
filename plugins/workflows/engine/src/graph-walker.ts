import type { Json } from '@svc/core/contracts'
import { END } from '@svc/workflow-lang'
import type { CompiledNode } from './compiled.ts'
import { branchMissing, tooManyVisits } from './errors.ts'
import type { Execution } from './execution.ts'
import type { Frame } from './frame.ts'
import { doStep } from './step.ts'

/** Walks a graph to its end; what the log has is done already. Throws StepFailed. */
export async function walkGraph(run: Execution, frame: Frame): Promise<Json> {
  const { graph, scope, path } = frame
  const visits = new Map<string, number>()
  let last: Json = null
  for (let name = graph.start; name !== END; ) {
    const node = graph.nodes[name]!
    const visit = (visits.get(name) ?? 0) + 1
    visits.set(name, visit)
    const step = visit === 1 ? path + name : `${path}${name}#${visit}`
    if (visit > node.maxVisits) throw run.failed(tooManyVisits(name, node.maxVisits))
    const outcome = await doStep(run, frame, node, step)
    if ('error' in outcome) {
      scope.error = outcome.error
      name = node.catch!
    } else {
      scope.nodes[name] = last = outcome.output
      name = follow(run, node, outcome.branch)
    }
  }
  return graph.result && !frame.isPast ? run.evaluate(graph.result, scope) : last
}

function follow(run: Execution, { name, next, branches }: CompiledNode, branch: string | undefined): string {
  if (!branches) return next
  if (branch !== undefined && Object.hasOwn(branches, branch)) return branches[branch]!
  if (next !== END) return next
  throw run.failed(branchMissing(name, branch, Object.keys(branches)))
}
