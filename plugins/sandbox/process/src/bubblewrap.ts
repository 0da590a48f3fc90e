import { lstat, readlink, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isFile } from './mount-points.ts'
import type { Shown } from './paths.ts'
import { isSystem, SYSTEM_FOLDERS } from './program.ts'
import type { Protection } from './protection.ts'

/** Of `/etc` only what programs need to find their libraries, names and time; passwords, keys and settings of services stay away. Each is a mount, and a mount costs a start as much as a hundredth of it. */
const ETC = 'ld.so.cache alternatives os-release passwd group nsswitch.conf localtime timezone mime.types'
/** And for the network, where it is allowed. */
const NETWORK =
  'resolv.conf hosts host.conf gai.conf protocols services ' +
  'ssl/certs ssl/openssl.cnf ssl/cert.pem pki/tls/certs pki/ca-trust/extracted ca-certificates crypto-policies'

/** What bubblewrap of this machine can, and the words that show the system. */
export interface Bubblewrap {
  readonly file: string
  readonly version: string
  /** Whether it can bound its folders in memory, and forbid further user namespaces (0.8 and newer). */
  readonly isModern: boolean
  readonly system: readonly string[]
  readonly network: readonly string[]
}

/** What one process sees and may. */
export interface View extends Shown {
  readonly network: boolean
  readonly protection: Protection
  readonly links: readonly (readonly [at: string, to: string])[]
  /** Folders in those of the system over which an empty one is put. */
  readonly hidden: readonly string[]
  readonly cwd: string
  /** Bytes of its `/tmp`. */
  readonly tmpBytes: number
  readonly unset: readonly string[]
  /** Variables that must not be there before it: the loader outside would follow them. */
  readonly set: Readonly<Record<string, string>>
}

/** Words of a command line. */
const words = (line: string) => line.split(' ')
const inEtc = (names: string) => words(names).map(name => `/etc/${name}`)

const SHARED_MEMORY = 67_108_864
/** The least that a folder in memory may be: a page. */
const EMPTY_BYTES = 4096

/** The whole line but for the program. */
export function lineOf(bwrap: Bubblewrap, view: View): string[] {
  const sized = (bytes: number, folder: string) => [...(bwrap.isModern ? ['--size', String(bytes)] : []), '--tmpfs', folder]
  const empty = (folder: string) => [...sized(EMPTY_BYTES, folder), '--remount-ro', folder]
  return [
    bwrap.file,
    ...words('--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --hostname sandbox'),
    ...(view.network ? [] : ['--unshare-net']),
    ...(bwrap.isModern ? ['--disable-userns'] : []),
    // Without dropping them a host that runs as root would be root in its namespaces, and could mount anew what is mounted for reading only.
    ...words('--die-with-parent --new-session --cap-drop ALL'),
    ...bwrap.system,
    ...(view.network ? bwrap.network : []),
    ...view.hidden.flatMap(empty),
    ...words('--proc /proc --dev /dev'),
    ...sized(Math.min(SHARED_MEMORY, view.tmpBytes), '/dev/shm'),
    ...sized(view.tmpBytes, '/tmp'),
    ...mounts(view, empty),
    ...view.links.flatMap(([at, to]) => ['--symlink', to, at]),
    // A host that runs as root owns the settings of the kernel in /proc/sys: bubblewrap (0.8) covers them only from those who could not write them anyway.
    ...words('--remount-ro /proc --remount-ro /dev --remount-ro / --chdir'),
    view.cwd,
    ...view.unset.flatMap(name => ['--unsetenv', name]),
    ...Object.entries(view.set).flatMap(([name, value]) => ['--setenv', name, value]),
    '--',
  ]
}

/** Outer folders first: what lies in them is put over them. */
function mounts({ read, write, protection }: View, empty: (folder: string) => string[]): string[] {
  const bind = (word: string) => (path: string) => [path, [word, path, path]] as const
  return [
    ...read.map(bind('--ro-bind')),
    ...[...write, ...protection.anchors].map(bind('--bind')),
    ...protection.read.map(bind('--ro-bind')),
    ...protection.absent.map(path => [path, isFile(path) ? ['--ro-bind', path, path] : empty(path)] as const),
  ]
    .toSorted(([one], [other]) => one.length - other.length)
    .flatMap(([, words]) => words)
}

/** How this machine's system is shown, and what of it is for the network. */
export async function systemWords(): Promise<Pick<Bubblewrap, 'system' | 'network'>> {
  const [folders, etc, network] = await Promise.all(
    [SYSTEM_FOLDERS, inEtc(ETC), inEtc(NETWORK)].map(all => Promise.all(all.map(shown)))
  )
  return { system: [...folders!, ...etc!].flat(), network: network!.flat() }
}

async function shown(path: string): Promise<string[]> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined || !(await stat(path).catch(() => undefined))) return []
  // `/bin` is a link to `usr/bin` nearly everywhere, and the time zone one to a file of `/usr`; what another link leads to is shown in its place.
  const to = found.isSymbolicLink() ? await readlink(path) : undefined
  if (to !== undefined && (SYSTEM_FOLDERS.includes(path) || isSystem(resolve(dirname(path), to)))) return ['--symlink', to, path]
  return ['--ro-bind', path, path]
}
