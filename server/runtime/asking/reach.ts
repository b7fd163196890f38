// Which addresses outside the server may call: an allow-list of hosts, and every private address shut unless it is listed.
import { BlockList, isIP } from 'node:net'
import { PaddockError } from '../../../protocol/errors.ts'

/**
 * An entry is a name (`trainer.example`, `*.example`), an address or a network (`10.0.0.7`, `10.0.0.0/8`, `[::1]`), each
 * but a network with a port where only that one is meant (`trainer.example:9000`). A name says who may be called, an
 * address what may be reached: a listed name that resolves to a private address needs that address listed too.
 * `localhost` is a name and the addresses that only this machine has.
 */
export interface Reach {
  /** Throws PaddockError `invalid_request` for a URL that may not be called, whatever its name resolves to. */
  check(url: string, path: string): URL
  /** True where a name of the allow-list may be connected to at this address. */
  mayConnect(address: string, port: number): boolean
}

interface Entry {
  host: string
  port: number | null
}

/**
 * `setting` is where the list stands, for sentences: `callbacks.allow`. Throws PaddockError `invalid_config` for an entry
 * that is none of the forms above.
 */
export function createReach(allow: readonly string[], setting: string): Reach {
  const entries = allow.map((entry) => parseEntry(entry, setting))
  const names = entries.filter(({ host }) => !isAddress(host))
  const addresses = [
    ...entries.filter(({ host }) => isAddress(host)),
    ...names
      .filter(({ host }) => host === 'localhost')
      .flatMap(({ port }) => [
        { host: '127.0.0.0/8', port },
        { host: '::1', port },
      ]),
  ].map(({ host, port }) => ({ port, matches: matcher(host) }))

  const isListed = (address: string, port: number) =>
    addresses.some((entry) => (entry.port ?? port) === port && entry.matches(address))

  return {
    check(text, path) {
      const url = parseUrl(text, path)
      const host = hostOf(url)
      const port = portOf(url)
      const allowed =
        isIP(host) !== 0
          ? isListed(host, port)
          : names.some((entry) => (entry.port ?? port) === port && isNamed(host, entry.host))
      if (allowed) return url
      throw new PaddockError(
        'invalid_request',
        `${host}:${port} is not among the hosts that may be called: add it to ${setting} in paddock.yaml if it is yours`,
        { path },
      )
    },
    mayConnect: (address, port) => !isPrivate(address) || isListed(address, port),
  }
}

/** The host of a URL as an address or a name: without brackets, without the dot that ends an absolute name. */
export function hostOf({ hostname }: URL): string {
  return unbracketed(hostname).replace(/\.$/, '')
}

export function portOf(url: URL): number {
  return Number(url.port || (url.protocol === 'https:' ? 443 : 80))
}

function parseUrl(text: string, path: string): URL {
  const refuse = (expected: string) => {
    throw new PaddockError('invalid_request', `expected ${expected}`, { path })
  }
  if (!URL.canParse(text)) refuse('an absolute URL, as http://trainer.example:9000/groups')
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') refuse('an http or https URL')
  // A secret in a URL ends up in logs and in the batch's record.
  if (url.username !== '' || url.password !== '') refuse('a URL without user and password')
  return url
}

function parseEntry(text: string, setting: string): Entry {
  const [, host = '', port] =
    /^(\[[^\]]+\]|[^:]+|[^:]*:.*:[^/]*(?:\/\d+)?)(?::(\d+))?$/.exec(text) ?? []
  const bare = unbracketed(host).toLowerCase()
  const isName = /^(\*\.)?[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/.test(bare)
  if (!isAddress(bare) && !isName)
    throw new PaddockError(
      'invalid_config',
      `${setting}: expected a host, an address or a network, as trainer.example, trainer.example:9000, 10.0.0.7 or 10.0.0.0/8, found ${JSON.stringify(text)}`,
      { path: setting },
    )
  return { host: bare, port: port === undefined ? null : Number(port) }
}

/** An address or a network of them. */
function isAddress(host: string): boolean {
  const [address = '', bits] = host.split('/')
  const version = isIP(address)
  return version !== 0 && (bits === undefined || Number(bits) <= (version === 4 ? 32 : 128))
}

function isNamed(host: string, name: string): boolean {
  return name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name
}

function matcher(network: string): (address: string) => boolean {
  const [address = '', bits] = network.split('/')
  const list = new BlockList()
  if (bits === undefined) list.addAddress(address, family(address))
  else list.addSubnet(address, Number(bits), family(address))
  return (candidate) => list.check(candidate, family(candidate))
}

/**
 * What no name of the open internet has: loopback, private, link-local, carrier-grade NAT, documentation, multicast and
 * reserved addresses, and the IPv6 forms that lead to an IPv4 one (OPS 4.3). Of a mapped address the IPv4 part is
 * looked at by BlockList itself.
 */
function isPrivate(address: string): boolean {
  return PRIVATE.check(address, family(address))
}

const PRIVATE = new BlockList()
for (const network of [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32'],
  ...['2002::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]) {
  const [address = '', bits] = network.split('/')
  PRIVATE.addSubnet(address, Number(bits), family(address))
}

function family(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4'
}

function unbracketed(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}
