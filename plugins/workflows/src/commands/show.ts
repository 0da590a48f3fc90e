import { JSON_FLAG, readLine } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { infoRecord } from '@svc/wire'
import { openWorkflows, useOf } from './ground.ts'
import { USAGE } from './line.ts'
import { placeOf, problemLines } from './validate.ts'

/** `svc workflows show <name>`: the definition as it is now, wherever it comes from. */
const show: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.show, JSON_FLAG, [1, 1])
  const { info, definition } = await (await openWorkflows(call)).show(positionals[0] ?? '', useOf(call, 'show'))
  if (values.json) return call.print(JSON.stringify({ workflow: infoRecord(info), definition }))
  const { stringify } = await import('yaml')
  call.note(`from ${info.source}`)
  call.print(stringify(definition, { lineWidth: 120 }).trimEnd())
  for (const line of problemLines(placeOf(info, info.source), info.problems ?? [])) call.note(line)
}

export default show
