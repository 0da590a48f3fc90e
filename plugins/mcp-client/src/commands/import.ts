import { JSON_FLAG, oneLine, readLine } from '@svc/command-line'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { messageOf, shownPath } from '@svc/core'
import type { Command } from '@svc/core/contracts'
import { importInvalid } from '../errors.ts'
import { addToFile } from '../home-edit.ts'
import { homeFile } from '../home-file.ts'
import { importServers } from '../import-servers.ts'
import { groundOf } from '../sandboxed.ts'
import { configuredServers, takeUp, useOf } from './ground.ts'
import { USAGE } from './line.ts'

/** `svc mcp import <file or ->`: the servers of another client; those whose names are taken stay out. */
const importing: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.import, JSON_FLAG, [1, 1])
  const { entries, notes } = importServers(await contentOf(positionals[0] ?? ''))
  const known = (await configuredServers(call)).map(one => one.entry.name)
  const names = entries.map(one => one.name)
  const fresh = entries.filter((one, at) => !known.includes(one.name) && names.indexOf(one.name) === at)
  const taken = entries.filter(one => !fresh.includes(one)).map(one => `${one.name}: left out: there is one of this name already`)
  const file = homeFile(call.home)
  if (fresh.length > 0) await addToFile(file, fresh)
  const added = fresh.map(one => one.name)
  const all = [...notes, ...taken]
  if (values.json) call.print(JSON.stringify({ added, notes: all, file }))
  else call.print(added.length === 0 ? 'nothing was added' : `added to ${shownPath(file)}: ${added.join(', ')}`)
  for (const note of values.json ? [] : all) call.note(oneLine(note, 300))
  const open = fresh.filter(one => groundOf(one) === 'all rights').map(one => one.name)
  if (open.length > 0) call.note(`with all rights of svc, until their entries say sandbox: true, run: ${open.join(', ')}`)
  return added.length === 0 ? (entries.length === 0 ? 1 : 0) : takeUp(call, useOf(call, 'mcp import'))
}

export default importing

async function contentOf(file: string): Promise<string> {
  if (file === '-') return text(process.stdin)
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw importInvalid(`it cannot be read: ${messageOf(error)}`)
  }
}
