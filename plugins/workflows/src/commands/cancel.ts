import { JSON_FLAG, readLine } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { statusRecord } from '@svc/wire'
import { openRuns, useOf } from './ground.ts'
import { USAGE } from './line.ts'

/** `svc workflows cancel <run>`: ends it, wherever it is worked on; 1 where that takes more than ten seconds. */
const cancel: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.cancel, JSON_FLAG, [1, 1])
  const [id = ''] = positionals
  const use = useOf(call, 'cancel')
  const workflows = await openRuns(call, use)
  const ending = new AbortController()
  // where no server takes it from the queue, it is undone here
  const working = workflows.work(id, { ...use, signal: AbortSignal.any([use.signal, ending.signal]) })
  const [run] = await Promise.all([workflows.cancel(id, use).finally(() => ending.abort()), working])
  if (values.json) call.print(JSON.stringify(statusRecord(run)))
  else call.print(run.status === 'running' ? `${id} is being ended` : `${id} is cancelled`)
  return run.status === 'running' ? 1 : 0
}

export default cancel
