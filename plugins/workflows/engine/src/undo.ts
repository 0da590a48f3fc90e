import type { ErrorTold } from '@svc/core/contracts'
import type { Execution } from './execution.ts'
import { UNDO } from './figures.ts'
import { newFrame, Stopped } from './frame.ts'
import { Ledger } from './ledger.ts'
import { walkGraph } from './graph-walker.ts'

/** Undoes what a failed run has done, the last first. What cannot be undone is logged, and the next is undone all the same. */
export async function undo(run: Execution, error: ErrorTold, signal: AbortSignal): Promise<readonly string[]> {
  const failed: string[] = []
  const orderOf = (step: string) => run.history.steps.get(step)?.order ?? 0
  for (const { step, graph, frame, output } of run.undoable.toSorted((a, b) => orderOf(b.step) - orderOf(a.step))) {
    const { nodes, ...vars } = frame.scope
    const path = `${UNDO}${step}/`
    const undoing = newFrame({ path, graph, vars: { ...vars, output, error }, nodes, ledger: new Ledger(), signal })
    try {
      await walkGraph(run, undoing)
    } catch (thrown) {
      if (thrown instanceof Stopped || signal.aborted) throw thrown
      failed.push(step)
    }
  }
  return failed
}
