import { nearest, type SvcError, svcError } from '@svc/core'

/** Nobody is there to be asked whether plugins may have what they ask for. */
export const consentMissing = (verb: string): SvcError =>
  svcError('CONSENT_MISSING', `nobody can be asked whether to ${verb}: this is no terminal`, {
    hint: 'read what is asked for above, and say --yes to accept it',
  })

export const needsTrust = (plugin: string, why: string): SvcError =>
  svcError('PLUGIN_NEEDS_TRUST', `would run in the process of svc, where nothing holds it: ${why}`, {
    plugin,
    hint: 'read its code, and say --trust if you trust it as much as svc itself',
  })

export const isolationUnfit = (plugin: string, isolation: string, why: string): SvcError =>
  svcError('PLUGIN_ISOLATION_UNFIT', `cannot run with --isolation ${isolation}: ${why}`, {
    plugin,
    hint: 'leave --isolation away: each plugin is given what fits it',
  })

export const notInstalled = (plugin: string, installed: readonly string[]): SvcError => {
  const near = nearest(plugin, installed) ?? endingWith(plugin, installed)
  return svcError('PLUGIN_NOT_INSTALLED', 'is not installed', {
    plugin,
    hint:
      near === undefined
        ? 'svc plugins list shows what is; one of the configuration is switched off there: plugins: [{ use: …, enabled: false }]'
        : `did you mean "${near}"?`,
  })
}

/** `dice` for `svc-plugin-example-dice`: nobody types what begins every name. One alone, or it is a guess. */
function endingWith(plugin: string, installed: readonly string[]): string | undefined {
  const [one, ...others] = installed.filter(name => name.endsWith(`-${plugin}`) || name.endsWith(`/${plugin}`))
  return others.length === 0 ? one : undefined
}

export const notBuilt = (plugin: string, file: string): SvcError =>
  svcError('PLUGIN_IMPORT_FAILED', `has no ${file}, which its package.json names as its module`, {
    plugin,
    hint: 'build it (npm run build writes what was made from TypeScript) and install it again; svc plugins lint tells more',
  })

/** As a start would say it. */
export const nameTaken = (plugin: string, slot: string, name: string, by: string): SvcError =>
  svcError('NAME_TAKEN', `adds "${name}" to ${slot}, where ${by} has added that name already`, {
    plugin,
    details: { slot, name, by },
    hint: `switch one of them off (svc plugins disable, or enabled: false in "plugins"), or install another plugin`,
  })

export const severalWithBundle = (): SvcError =>
  svcError('COMMAND_LINE_INVALID', 'a bundle takes the place of all that is installed: nothing else can be installed with it', {
    hint: 'restore the bundle first, and install the others then',
  })
