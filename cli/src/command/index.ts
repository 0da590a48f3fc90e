// Base classes and flags of commands
export { Args, Flags } from '@oclif/core'
export { HEADER_FLAG, JSON_FLAG, MANAGED_FLAGS, PORT_FLAG, SERVER_FLAGS, secondsOf } from './svc-command.ts'
export { BaseCommand, type RunnableCommand, SvcCommand } from './svc-command.ts'
// Errors
export { errorFromRecord } from './errors.ts'
export { errorFacts, errorPage, printError, problemsOf } from './errors.ts'
export { INTERRUPTED, usageError } from './errors.ts'
// The terminal: questions and text
export { hiddenQuestion, passingPerson, type TerminalUser, personAt } from './person.ts'
export { clipped, counted, milliseconds, named, oneLine, table, visible, visibleLines, wrapped } from './text.ts'
// A protocol over standard input and output
export { takeOutput, untilSignal } from './protocol-streams.ts'
// Variables of plugins
export { UNSET_HINT, unsetIn, unsetText } from './unset-variables.ts'
// Tests
export { type CommandRun, runCommand } from './run-command.ts'
