import { Args, Flags } from '@svc/cli/command'

/** What the commands that let plugins in take. */
export const changeFlags = {
  yes: Flags.boolean({ char: 'y', summary: 'Accept what they ask for: nobody is asked' }),
  'dry-run': Flags.boolean({ summary: 'Show what would come, and change nothing' }),
  trust: Flags.boolean({ summary: 'Let code in that nothing holds: what runs in the process of svc' }),
  isolation: Flags.option({
    summary: 'Where their code runs; default: process, or what fits them',
    options: ['process', 'in-process', 'quickjs'] as const,
  })(),
}

export const offlineFlag = { offline: Flags.boolean({ summary: 'Only what npm has in its cache' }) }

export const placeFlags = {
  config: Flags.string({
    char: 'c',
    summary: 'Configuration that they are tried with where no server runs',
    helpValue: '<file>',
  }),
  json: Flags.boolean({ summary: 'One JSON object' }),
}

/** What the commands take that let nothing in, and so ask nobody: a script may say --yes to each of them. */
export const unaskedFlags = {
  yes: Flags.boolean({ char: 'y', summary: 'Taken, and without effect: nobody is asked where nothing is let in' }),
  ...placeFlags,
}

export const namesArg = Args.string({
  description: 'Names of installed plugins',
  required: true,
  multiple: true,
  ignoreStdin: true,
})
