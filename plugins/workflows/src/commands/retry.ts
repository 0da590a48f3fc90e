import { JSON_FLAG, readLine } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { howOf, tellBegun } from './begun.ts'
import { openRuns, useOf } from './ground.ts'
import { DETACH_FLAG, USAGE } from './line.ts'

/** `svc workflows retry <run>`: a new run that takes over what is done and begins with what failed; `--detach` leaves it to a server of this home. */
const retry: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.retry, { ...DETACH_FLAG, ...JSON_FLAG }, [1, 1])
  const use = useOf(call, 'retry')
  const workflows = await openRuns(call, use)
  const begun = await workflows.retry(positionals[0] ?? '', howOf(values), use)
  return tellBegun(call, workflows, begun, values)
}

export default retry
