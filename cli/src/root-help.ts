import { readFileSync } from 'node:fs'
import { contributedCommands } from './contributed.ts'
import { DESCRIPTION, SUMMARIES, TOPICS } from './summaries.ts'

export async function printRootHelp(_out: NodeJS.WriteStream): Promise<boolean> {
  return false
}
