// What the commands of a plugin are made with
export { Args, Flags } from '@oclif/core'
export { type CommandRun, runCommand } from './run-command.ts'
export { JSON_FLAG, type RunnableCommand, SvcCommand } from './svc-command.ts'
