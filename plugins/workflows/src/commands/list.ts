import { JSON_FLAG, oneLine, readLine, table } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { infoRecord } from '@svc/wire'
import { openWorkflows, useOf } from './ground.ts'
import { counted, USAGE } from './line.ts'

const HEAD = ['NAME', 'NODES', 'FROM', 'DESCRIPTION']

/** `svc workflows list`: those of plugins, and the files below the roots. */
const list: Command = async call => {
  const { values } = readLine(call.args, USAGE.list, JSON_FLAG, [0, 0])
  const all = await (await openWorkflows(call)).list(useOf(call, 'list'))
  if (values.json) return call.print(JSON.stringify({ workflows: all.map(infoRecord) }))
  if (all.length === 0) return call.note('there are no workflows; write one into a folder of workflows.roots')
  const rows = all.map(({ name, nodes, source, description = '', problems = [] }) => {
    const wrong = `cannot run: ${counted(problems.length, 'problem')}, svc workflows validate ${name}`
    return [name, problems.length > 0 ? '-' : String(nodes), source, problems.length > 0 ? wrong : oneLine(description)]
  })
  for (const line of table([HEAD, ...rows])) call.print(line)
}

export default list
