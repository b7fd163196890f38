// The dashboard.
import { h, replace } from './dom.js'

export async function dashPage(main) {
  replace(main, h('h1', {}, 'Dashboard'))
}
