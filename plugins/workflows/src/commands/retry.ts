import { JSON_FLAG, readLine } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { follow } from './follow.ts'
import { openRuns, useOf } from './ground.ts'
import { USAGE } from './line.ts'

/** `svc workflows retry <run>`: a new run that takes over what is done and begins with what failed. */
const retry: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.retry, JSON_FLAG, [1, 1])
  const use = useOf(call, 'retry')
  const workflows = await openRuns(call, use)
  const { id } = await workflows.retry(positionals[0] ?? '', use)
  call.note(`run ${id}`)
  return follow(call, workflows, id, values)
}

export default retry
