/** A setting of git by its full name. */
export type Setting = readonly [name: string, value: string]

// A repository may come from anywhere, and its settings can name programs: git would run them as us. Each key that can is overruled here; flags of
// the commands do the same once more where there are any (`--no-ext-diff`, `--no-textconv`).
const SAFE: readonly Setting[] = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.pager', 'cat'],
  ['core.editor', 'false'],
  ['core.askPass', ''],
  ['core.sshCommand', 'false'],
  ['core.gitProxy', ''],
  ['credential.helper', ''],
  ['protocol.allow', 'never'],
  ['diff.external', ''],
  ['diff.orderFile', '/dev/null'],
  ['gpg.program', 'false'],
  ['gpg.ssh.program', 'false'],
  ['gpg.x509.program', 'false'],
  ['log.showSignature', 'false'],
  ['commit.gpgSign', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['safe.bareRepository', 'explicit'],
  // A repository within this one has settings of its own.
  ['submodule.recurse', 'false'],
  ['diff.ignoreSubmodules', 'dirty'],
  ['diff.submodule', 'short'],
  ['status.submoduleSummary', 'false'],
  // What is read by program looks the same everywhere.
  ['core.quotePath', 'false'],
  ['color.ui', 'false'],
  ['diff.noprefix', 'false'],
  ['diff.mnemonicPrefix', 'false'],
  ['diff.renames', 'true'],
  ['i18n.logOutputEncoding', 'UTF-8'],
]

/** The settings of filters that take their programs away; told by any of their settings. */
export const withoutFilter = (name: string): Setting[] => [
  [`filter.${name}.clean`, ''],
  [`filter.${name}.smudge`, ''],
  [`filter.${name}.process`, ''],
  [`filter.${name}.required`, 'false'],
]

/** The whole environment of a git command: nothing else of ours reaches it. */
export function environment(ceilings: readonly string[], own: readonly Setting[], trusted: boolean): NodeJS.ProcessEnv {
  const settings = [...SAFE.filter(([name]) => !(trusted && name === 'core.hooksPath')), ...own]
  const { PATH, HOME, XDG_CONFIG_HOME } = process.env
  return {
    PATH,
    ...(HOME === undefined ? {} : { HOME }),
    ...(XDG_CONFIG_HOME === undefined ? {} : { XDG_CONFIG_HOME }),
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_LAZY_FETCH: '1',
    // A name that no protocol has: not one is allowed.
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_PAGER: 'cat',
    GIT_EDITOR: 'false',
    GIT_CEILING_DIRECTORIES: ceilings.join(':'),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([name, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, name],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ])
    ),
  }
}
